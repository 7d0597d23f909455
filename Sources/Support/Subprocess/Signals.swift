import CLinux
import Concurrency
import Glibc

/// Handling of the signals sent to this process.
public enum Signals {
    /// Blocks `numbers` in the calling thread and in every thread that it starts afterwards, so that only
    /// ``listen(to:_:)`` receives them. Call it first in `main`.
    public static func block(_ numbers: [Int32]) {
        var mask = set(of: numbers)
        pthread_sigmask(SIG_BLOCK, &mask, nil)
        // A shell without job control starts background programs with SIGINT ignored, and ignored signals are never
        // delivered.
        for number in numbers { signal(number, SIG_DFL) }
        signal(SIGPIPE, SIG_IGN)
    }

    /// Calls `body` for each arrival of one of `numbers`, which must be blocked, in order. It runs on a dedicated
    /// thread until the process ends, even if all other threads are stuck. Call it only once.
    public static func listen(to numbers: [Int32], _ body: @escaping @Sendable (Int32) -> Void) {
        _ = NamedThread(name: "signals") {
            var mask = set(of: numbers)
            while true {
                var number: Int32 = 0
                if sigwait(&mask, &number) == 0 { body(number) }
            }
        }
    }

    private static func set(of numbers: [Int32]) -> sigset_t {
        var mask = sigset_t()
        sigemptyset(&mask)
        for number in numbers { sigaddset(&mask, number) }
        return mask
    }
}
