import Glibc

/// Bytes of memory that a process holds now (proc(5), statm: the second number counts pages); 0 where that cannot be read.
/// - Parameter pid: nil for this process.
public func residentBytes(of pid: pid_t? = nil) -> Int {
    let numbers = systemText(of: "/proc/\(pid.map(String.init) ?? "self")/statm").split(separator: " ")
    return (numbers.dropFirst().first.flatMap { Int($0) } ?? 0) * sysconf(Int32(_SC_PAGESIZE))
}
