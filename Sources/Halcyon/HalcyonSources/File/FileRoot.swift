import CLinux
import Glibc

/// A folder under which files may be read.
struct FileRoot: Sendable {
    /// Whether the kernel looks paths up (Linux 5.6); else each step is looked up here, and no symbolic link is followed.
    var usesKernel = true
    private let parts: [Substring]

    /// - Parameter path: absolute. What it is itself is the operator's affair: it may lead over symbolic links.
    init(_ path: String) {
        parts = path.split(separator: "/").filter { $0 != "." }
    }

    private var path: String { "/" + parts.joined(separator: "/") }

    /// What of an absolute path lies under this folder; nil when nothing does.
    func path(of file: String) -> String? {
        let names = file.split(separator: "/")
        guard names.count > parts.count, zip(names, parts).allSatisfy({ $0.utf8.elementsEqual($1.utf8) }) else {
            return nil
        }
        return names.dropFirst(parts.count).joined(separator: "/")
    }

    /// Opens what has this path in the folder, without waiting for a writer, if it is a pipe.
    ///
    /// Where the path leads is looked up once and from the folder's own descriptor: nobody who moves folders or links
    /// about meanwhile gets a file opened that lies elsewhere (openat2(2), RESOLVE_BENEATH).
    /// - Throws: ``SystemError``: EXDEV or ELOOP when it leads out.
    func open(_ path: String) throws(SystemError) -> Int32 {
        let folder = Glibc.open(self.path, clinux_o_path | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw SystemError(errno) }
        defer { close(folder) }
        if usesKernel {
            // Somebody renamed a folder on the way meanwhile: the kernel then wants to be asked again.
            for _ in 0..<64 {
                let file = clinux_open_beneath(folder, path, Self.flags)
                if file >= 0 { return file }
                if errno == ENOSYS || errno == EPERM { break }  // EPERM: a container that does not know the call
                guard errno == EAGAIN else { throw SystemError(errno) }
            }
        }
        return try walk(path, from: folder)
    }

    private func walk(_ path: String, from root: Int32) throws(SystemError) -> Int32 {
        let names = path.split(separator: "/")
        guard !names.contains("..") else { throw SystemError(EXDEV) }
        var folder = root
        defer { if folder != root { close(folder) } }
        for name in names.dropLast() {
            let next = openat(folder, String(name), clinux_o_path | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            // Of a link it is not said that it is one, where a folder is wanted.
            guard next >= 0 else { throw SystemError(isLink(name, in: folder) ? ELOOP : errno) }
            if folder != root { close(folder) }
            folder = next
        }
        let file = openat(folder, String(names.last ?? ""), Self.flags | O_NOFOLLOW)
        guard file >= 0 else { throw SystemError(errno) }
        return file
    }

    private func isLink(_ name: Substring, in folder: Int32) -> Bool {
        let code = errno
        var status = stat()
        defer { errno = code }
        return fstatat(folder, String(name), &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    private static let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
}

/// What a call of the system failed with.
struct SystemError: Error, CustomStringConvertible {
    let code: Int32

    init(_ code: Int32) { self.code = code }

    var description: String { String(cString: strerror(code)) }
}
