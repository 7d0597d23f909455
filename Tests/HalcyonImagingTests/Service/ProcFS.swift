import Glibc

/// Information from /proc (proc(5)).
enum ProcFS {
    /// The targets of the open descriptors of this process, except for those of the Swift runtime, which opens timers
    /// when they are needed.
    static var descriptors: [String] {
        names(in: "/proc/self/fd").compactMap { target(of: "/proc/self/fd/\($0)") }
            .filter { !$0.hasPrefix("anon_inode:") }.sorted()
    }

    /// Returns the child processes of a process.
    static func children(of parent: Int32) -> [Int32] {
        names(in: "/proc").compactMap { Int32($0) }.filter {
            text("/proc/\($0)/status").contains("\nPPid:\t\(parent)\n")
        }
    }

    /// Returns the first 64 KiB of a file as text, or an empty text if it cannot be opened.
    static func text(_ path: String) -> String {
        let descriptor = open(path, O_RDONLY)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    /// Returns the target of a symbolic link, or nil if there is none.
    private static func target(of path: String) -> String? {
        var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = target.withUnsafeMutableBytes { readlink(path, $0.baseAddress!, $0.count) }
        return count < 0 ? nil : String(decoding: target.prefix(count), as: UTF8.self)
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
