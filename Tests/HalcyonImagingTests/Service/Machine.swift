import Glibc

/// What /proc says (proc(5)).
enum Machine {
    /// How many descriptors of this process are open.
    static var descriptors: Int { names(in: "/proc/self/fd").count }

    /// The processes that have this one as their parent.
    static func children(of parent: Int32) -> [Int32] {
        names(in: "/proc").compactMap { Int32($0) }.filter {
            text("/proc/\($0)/status").contains("\nPPid:\t\(parent)\n")
        }
    }

    /// A file, as far as it is text; nothing when there is none.
    static func text(_ path: String) -> String {
        let descriptor = open(path, O_RDONLY)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    private static func names(in path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            names.append(
                withUnsafePointer(to: &entry.pointee.d_name) {
                    String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
                })
        }
        return names
    }
}
