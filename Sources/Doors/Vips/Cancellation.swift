import CVips
import Threads

/// Stops a running pipeline from another thread. One for each job.
public final class Cancellation: Sendable {
    private struct State {
        var cancelled = false
        /// The address of the image whose pixels are being computed. It is set and cleared by the job, which holds the
        /// image all that time, so under the lock it is always alive.
        var running: UInt?
    }

    private let state = Lock(State())

    /// A token that has not been used.
    public init() {}

    /// Whether ``cancel()`` was called.
    public var isCancelled: Bool { state.withLock { $0.cancelled } }

    /// Stops what runs, and what would run later with this token. libvips looks between strips of pixels, so it takes a
    /// few milliseconds; a codec that takes the picture whole finishes first. ``Format/stopsWhileLoading``,
    /// ``Image/isDecodedAtOnce`` and ``Format/stopsWhileSaving`` say which do.
    public func cancel() {
        state.withLock { state in
            state.cancelled = true
            guard let address = state.running else { return }
            vips_image_set_kill(UnsafeMutablePointer(bitPattern: address), 1)
        }
    }

    /// False when cancelled already: the work is not to begin.
    func begin(_ image: Image) -> Bool {
        let address = UInt(bitPattern: image.handle)
        return state.withLock { state in
            guard !state.cancelled else { return false }
            state.running = address
            return true
        }
    }

    /// The work is over. True when it was cancelled meanwhile, so that its failure is nobody's fault.
    func end() -> Bool {
        state.withLock { state in
            state.running = nil
            return state.cancelled
        }
    }
}
