import HalcyonModel
import Threads
import Vips

/// The memory of all renderings under way: each takes, before it decodes a pixel, what it is estimated to need (``RenderPlan/memory``),
/// and waits on its thread until that is free. They are served as they came, so that a large one is not kept waiting by small ones.
///
/// What needs more than there is at all has it to itself. Children that are idle hold memory too (``rest(_:)``): they are
/// ended when a rendering needs it.
final class DecodingMemory: Sendable {
    /// Bytes that a rendering has. It gives them back at the latest when nobody holds it.
    final class Share: Sendable {
        private let memory: DecodingMemory
        private let bytes: Int
        private let isResting: Bool

        fileprivate init(_ memory: DecodingMemory, _ bytes: Int, isResting: Bool) {
            self.memory = memory
            self.bytes = bytes
            self.isResting = isResting
        }

        deinit { memory.giveBack(bytes, isResting: isResting) }
    }

    private struct State {
        /// Bytes of all together.
        let limit: Int
        /// Bytes that renderings have taken.
        var taken = 0
        /// Renderings that have taken some.
        var renderings = 0
        /// Bytes that idle children hold.
        var resting = 0
        /// Numbers of those who wait, as they came.
        var queue: [UInt64] = []
        var numbers: UInt64 = 0

        var free: Int { limit - taken - resting }

        mutating func join() -> UInt64 {
            numbers += 1
            queue.append(numbers)
            return numbers
        }

        mutating func takeIfFree(_ bytes: Int) -> Bool {
            guard renderings == 0 || bytes <= free else { return false }
            taken += bytes
            renderings += 1
            return true
        }
    }

    private let state: ConditionLock<State>

    /// - Parameter limit: bytes of all together.
    init(limit: Int) { state = ConditionLock(State(limit: limit)) }

    /// Bytes that renderings have taken, and how many renderings wait for theirs.
    var use: (taken: Int, waiting: Int) { state.withLock { ($0.taken, $0.queue.count) } }

    /// Takes what is free, unless others wait for it.
    /// - Returns: nil when it has to be waited for.
    func share(_ bytes: Int) -> Share? {
        let isTaken = state.withLock { $0.queue.isEmpty && $0.takeIfFree(bytes) }
        return isTaken ? Share(self, bytes, isResting: false) : nil
    }

    /// Takes what is free for a child that is idle, unless renderings wait for it.
    func rest(_ bytes: Int) -> Share? {
        let isTaken = state.withLock { state in
            guard state.queue.isEmpty, bytes <= state.free else { return false }
            state.resting += bytes
            return true
        }
        return isTaken ? Share(self, bytes, isResting: true) : nil
    }

    /// Waits on the calling thread until the bytes are free.
    /// - Parameter isStopped: asked whenever something has changed, or ``wake()`` was called, with the mutex held.
    /// - Returns: nil when it was stopped first.
    func wait(for bytes: Int, unless isStopped: () -> Bool) -> Share? {
        let number = state.withLock { $0.join() }
        let isTaken: Bool = state.wait { state in
            if isStopped() {
                state.queue.removeAll { $0 == number }
                return false
            }
            guard state.queue.first == number, state.takeIfFree(bytes) else { return nil }
            state.queue.removeFirst()
            return true
        }
        // The next in the queue may have room.
        state.broadcast()
        return isTaken ? Share(self, bytes, isResting: false) : nil
    }

    /// Has all who wait look whether they were stopped.
    func wake() {
        // With the mutex, so that nobody is between having looked and waiting.
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

/// Where one rendering gets its memory, on its thread.
struct MemoryDoor {
    let memory: DecodingMemory
    let turn: Turn
    let clock: TurnClock
    /// Ends the children that are idle.
    var makeRoom: () -> Void = {}

    /// Waits until there is room. Its time does not pass meanwhile: that others take the memory is no fault of its own. Whoever stops
    /// the turn calls ``DecodingMemory/wake()`` too.
    /// - Throws: why it was stopped first.
    func enter(_ bytes: Int) throws(Turn.Stop) -> DecodingMemory.Share {
        if let share = memory.share(bytes) { return share }
        makeRoom()
        clock.pause()
        defer { clock.start() }
        guard let share = memory.wait(for: bytes, unless: { turn.stopped != nil }) else {
            throw turn.stopped ?? .cancelled
        }
        return share
    }
}

/// Which codecs this process keeps apart from itself.
enum Codecs {
    /// Whether one of them reads or writes what is ordered. What they read is not even opened here: libraries that parse
    /// documents (SVG, PDF), and those that do not look up before they are done with a picture, however small (HEIF,
    /// JPEG XL).
    ///
    /// - Parameter format: the source's.
    static func areApart(_ order: Turn.Order, of format: Format) -> Bool {
        order.variants.contains { $0.output.format == .avif || $0.output.format == .jxl }
            || isApart(format)
            || order.assets.values.contains { file in
                // What is of no known format is refused without work.
                (try? EncodedImage(file).format).map(isApart) ?? false
            }
    }

    /// Whether what reads the format is one of them.
    static func isApart(_ format: Format) -> Bool {
        switch format {
        case .heif, .jxl, .svg, .pdf: true
        case .jpeg, .png, .webp, .gif, .tiff: false
        }
    }
}
