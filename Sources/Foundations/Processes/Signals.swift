import CLinux
import Glibc
import Threads

/// The signals a process lives by.
public enum Signals {
    /// Blocks `numbers` in the calling thread and in every thread it starts from now on, so that ``listen(to:_:)`` is the only
    /// one to see them. Call it first thing in `main`.
    public static func block(_ numbers: [Int32]) {
        var mask = set(of: numbers)
        pthread_sigmask(SIG_BLOCK, &mask, nil)
        // A shell without job control starts background programs with SIGINT ignored, and ignored signals never arrive.
        for number in numbers { signal(number, SIG_DFL) }
        signal(SIGPIPE, SIG_IGN)
    }

    /// Calls `body` for each arrival of one of `numbers`, which have been blocked, in order. That happens on a thread made for it, until
    /// the process ends: also when nothing else gets on. Listen once only.
    public static func listen(to numbers: [Int32], _ body: @escaping @Sendable (Int32) -> Void) {
        _ = WorkThread(name: "signals", stackSize: 1 << 16) {
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
