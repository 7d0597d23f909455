import Glibc

/// Bytes of memory that a process holds now (proc(5), statm: the second number counts pages); 0 where that cannot be read.
/// - Parameter pid: nil for this process.
public func residentBytes(of pid: pid_t? = nil) -> Int { pages(of: pid)(1) }

/// Bytes of memory that a process holds now and shares with no file, such as its program and its libraries; 0 where that cannot be read.
/// - Parameter pid: nil for this process.
public func privateBytes(of pid: pid_t? = nil) -> Int {
    let bytes = pages(of: pid)
    return bytes(1) - bytes(2)
}

/// Bytes of this process that count towards RLIMIT_DATA (getrlimit(2)), used or not; 0 where that cannot be read.
public func dataBytes() -> Int { pages(of: nil)(5) }

/// The numbers of /proc/PID/statm, in bytes: size, resident, shared, text, 0, data.
private func pages(of pid: pid_t?) -> (Int) -> Int {
    let numbers = systemText(of: "/proc/\(pid.map(String.init) ?? "self")/statm").split(separator: " ")
    return { index in
        guard numbers.indices.contains(index), let count = Int(numbers[index]) else { return 0 }
        return count * sysconf(Int32(_SC_PAGESIZE))
    }
}
