import Glibc
import Threads

/// Holds an origin's thread until it is opened.
final class Gate: Sendable {
    private let isOpen = Lock(false)

    func open() { isOpen.withLock { $0 = true } }

    /// Blocks its thread.
    func pass() { while !isOpen.withLock({ $0 }) { usleep(5000) } }
}
