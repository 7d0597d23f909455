import Glibc
import Processes

/// The processor time of this process (getrlimit(2), RLIMIT_CPU).
///
/// A parent ends a child that takes too long, by the clock. It cannot while it stands still itself, or when it
/// hangs: then the child ends by this.
enum ProcessorTime {
    /// Looked up once: each rendering is given a limit of its own.
    private static let processors = MachineShare.processors

    /// Allows so much more, on each processor: encoders have threads of their own. What takes more is ended by SIGXCPU.
    static func limit(to time: Duration) {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        let used = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &limit) == 0 else { return }
        // Two seconds more, for what is rounded off.
        limit.rlim_cur = min(
            limit.rlim_max, rlim_t(used + processors * Int(time.components.seconds + 1) + 2))
        setrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &limit)
    }
}
