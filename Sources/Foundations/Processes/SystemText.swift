import Glibc

/// The text of a file that Linux makes up when it is read (proc(5), cgroups(7)), which says nothing of its length before; empty where it cannot be read.
public func systemText(of path: String) -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 4096)
    while true {
        let count = read(descriptor, &part, part.count)
        guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
        bytes += part.prefix(count)
    }
}
