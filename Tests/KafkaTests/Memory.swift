import Glibc

/// What this process holds in memory, from /proc/self/statm.
func residentMegabytes() -> Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, 256, file) != nil else { return 0 }
    let words = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self).split(
        separator: " ")
    return Int(words[1])! * Int(sysconf(Int32(_SC_PAGESIZE))) / 1_000_000
}
