import Concurrency
import HalcyonModel
import Vips

/// The memory of all renderings in flight. Before a rendering decodes a pixel, it reserves its estimated memory
/// (``RenderPlan/memory``), and waits on its thread until that is available. Waiters are served in order of arrival, so
/// that small renderings do not starve a large one.
///
/// A rendering that needs more than the whole budget runs alone. Idle child processes hold memory too (``reserveIdle(_:)``).
/// They are terminated when a rendering needs it.
final class MemoryBudget: Sendable {
    /// The reserved memory of a rendering. It is released with the last reference.
    final class Reservation: Sendable {
        private let memory: MemoryBudget
        private let bytes: Int
        private let isResting: Bool

        fileprivate init(_ memory: MemoryBudget, _ bytes: Int, isResting: Bool) {
            self.memory = memory
            self.bytes = bytes
            self.isResting = isResting
        }

        deinit { memory.giveBack(bytes, isResting: isResting) }
    }

    private struct State {
        /// The size of the budget, in bytes.
        let limit: Int
        /// The bytes reserved by renderings.
        var taken = 0
        /// The number of renderings with a reservation.
        var renderings = 0
        /// The bytes held by idle child processes.
        var resting = 0
        /// The tickets of the waiters, in order of arrival.
        var queue: [UInt64] = []
        var numbers: UInt64 = 0

        var free: Int { limit - taken - resting }

        mutating func join() -> UInt64 {
            numbers += 1
            queue.append(numbers)
            return numbers
        }

        mutating func reserveIfAvailable(_ bytes: Int) -> Bool {
            guard renderings == 0 || bytes <= free else { return false }
            taken += bytes
            renderings += 1
            return true
        }
    }

    private let state: ConditionLock<State>

    /// - Parameter limit: The size of the budget, in bytes.
    init(limit: Int) { state = ConditionLock(State(limit: limit)) }

    /// The bytes reserved by renderings, and the number of renderings that wait.
    var use: (taken: Int, waiting: Int) { state.withLock { ($0.taken, $0.queue.count) } }

    /// Reserves memory if it is available and no other rendering waits.
    /// - Returns: The reservation, or nil if it has to be waited for.
    func share(_ bytes: Int) -> Reservation? {
        let isTaken = state.withLock { $0.queue.isEmpty && $0.reserveIfAvailable(bytes) }
        return isTaken ? Reservation(self, bytes, isResting: false) : nil
    }

    /// Reserves memory for an idle child process if it is available and no rendering waits.
    func reserveIdle(_ bytes: Int) -> Reservation? {
        let isTaken = state.withLock { state in
            guard state.queue.isEmpty, bytes <= state.free else { return false }
            state.resting += bytes
            return true
        }
        return isTaken ? Reservation(self, bytes, isResting: true) : nil
    }

    /// Waits on the calling thread until the memory is available.
    /// - Parameter isStopped: A closure that is called with the mutex held, after every change and every call of
    ///   ``wake()``.
    /// - Returns: The reservation, or nil if the wait was stopped first.
    func wait(for bytes: Int, unless isStopped: () -> Bool) -> Reservation? {
        let number = state.withLock { $0.join() }
        let isTaken: Bool = state.wait { state in
            if isStopped() {
                state.queue.removeAll { $0 == number }
                return false
            }
            guard state.queue.first == number, state.reserveIfAvailable(bytes) else { return nil }
            state.queue.removeFirst()
            return true
        }
        // There may be enough memory for the next waiter.
        state.broadcast()
        return isTaken ? Reservation(self, bytes, isResting: false) : nil
    }

    /// Wakes all waiters, so that they check whether they were stopped.
    func wake() {
        // The mutex ensures that no waiter is between its check and its wait.
        state.withLock { _ in }
        state.broadcast()
    }

    private func giveBack(_ bytes: Int, isResting: Bool) {
        state.withLock { state in
            if isResting {
                state.resting -= bytes
            } else {
                state.taken -= bytes
                state.renderings -= 1
            }
        }
        state.broadcast()
    }
}

/// The memory reservation of one rendering, on its thread.
struct MemoryReservation {
    let memory: MemoryBudget
    let task: RenderTask
    let clock: RenderDeadline
    /// Terminates the idle child processes.
    var makeRoom: () -> Void = {}

    /// Waits until the memory is available. The deadline is suspended meanwhile, because the wait is caused by other
    /// renderings. The caller that stops the task must also call ``MemoryBudget/wake()``.
    /// - Throws: The reason for which it was stopped first.
    func enter(_ bytes: Int) throws(RenderTask.CancellationReason) -> MemoryBudget.Reservation {
        if let share = memory.share(bytes) { return share }
        makeRoom()
        clock.pause()
        defer { clock.start() }
        guard let share = memory.wait(for: bytes, unless: { task.stopped != nil }) else {
            throw task.stopped ?? .cancelled
        }
        return share
    }
}

/// The codecs that are isolated from this process.
enum Codecs {
    /// Returns true if the input requires an isolated codec. Such sources are not even opened in this process. Isolated
    /// are libraries that parse documents (SVG, PDF), and those that do not check for cancellation until an image is
    /// done, however small (HEIF, JPEG XL, JPEG 2000).
    ///
    /// - Parameter format: The format of the source.
    static func areApart(_ order: RenderTask.Input, of format: Format) -> Bool {
        order.variants.contains { $0.output.format == .avif || $0.output.format == .jxl }
            || isApart(format)
            || order.assets.values.contains { file in
                // A file of an unknown format is rejected without any work.
                (try? EncodedImage(file).format).map(isApart) ?? false
            }
    }

    /// Returns true if the decoder of the format is isolated.
    static func isApart(_ format: Format) -> Bool {
        switch format {
        case .heif, .jxl, .svg, .pdf, .jp2: true
        case .jpeg, .png, .webp, .gif, .tiff, .bmp, .ico: false
        }
    }
}
