import Glibc
import Processes

/// SIGINT and SIGTERM: the first asks to stop, one more ends the process at once.
enum StopRequest {
    static let signals = [SIGINT, SIGTERM]

    /// Has `act` called when the process is asked to stop. To be called once in the life of a process.
    static func listen(_ act: @escaping @Sendable () -> Void) {
        Task {
            var isAsked = false
            for await number in Signals.stream(of: signals) {
                if isAsked { _exit(128 + number) }
                isAsked = true
                act()
            }
        }
    }
}
