import Glibc

/// Bytes of memory that a process holds now (proc(5), statm: the second number counts pages); 0 where that cannot be read.
/// - Parameter pid: nil for this process.
public func residentBytes(of pid: pid_t? = nil) -> Int {
    let descriptor = open("/proc/\(pid.map(String.init) ?? "self")/statm", O_RDONLY)
    guard descriptor >= 0 else { return 0 }
    defer { close(descriptor) }
    var text = [UInt8](repeating: 0, count: 128)
    let count = read(descriptor, &text, text.count)
    let pages = String(decoding: text.prefix(max(0, count)), as: UTF8.self).split(separator: " ").dropFirst().first
    return (pages.flatMap { Int($0) } ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
}
