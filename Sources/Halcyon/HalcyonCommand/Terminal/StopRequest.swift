import Glibc
import Processes
import Threads

/// SIGINT and SIGTERM: the first asks to stop, one more ends the process at once.
enum StopRequest {
    static let signals = [SIGINT, SIGTERM]

    /// Has `act` called when the process is asked to stop. To be called once in the life of a process.
    static func listen(_ act: @escaping @Sendable () -> Void) {
        let isAsked = Lock(false)
        Signals.listen(to: signals) { number in
            let isSecond = isAsked.withLock { isAsked in
                defer { isAsked = true }
                return isAsked
            }
            if isSecond { _exit(128 + number) }
            act()
        }
    }
}
