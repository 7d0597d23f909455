import Glibc
import Processes

/// The memory that this process, a child, may reserve for the rendering that it is at (getrlimit(2), RLIMIT_DATA).
///
/// What a rendering takes is an estimate, and its parent looks at what it really holds. Where the parent cannot, or not in time, the
/// child fails, or dies, and not the worker or the machine. Libraries reserve up to twice what they touch.
struct GrantedMemory {
    /// Bytes that a process may have beside what it was given: for what libraries keep, for holes, and for stacks of threads,
    /// which are reserved and hardly used.
    private static let spare = 64 << 20 + MachineShare.processors * (16 << 20)

    private let base = dataBytes()

    /// Allows so many bytes.
    func limit(to bytes: Int) {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = min(limit.rlim_max, rlim_t(base + Self.spare + 2 * bytes))
        setrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &limit)
    }
}
