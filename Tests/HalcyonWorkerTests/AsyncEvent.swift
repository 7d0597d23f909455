import Concurrency
import Glibc

/// Holds an origin's thread until it is opened.
final class AsyncEvent: Sendable {
    private let isSignaled = Lock(false)

    func signal() { isSignaled.withLock { $0 = true } }

    /// Blocks its thread.
    func pass() { while !isSignaled.withLock({ $0 }) { usleep(5000) } }
}
