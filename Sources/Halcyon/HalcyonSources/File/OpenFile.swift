import Glibc

/// A regular file that was opened for reading. It blocks: not for the cooperative pool.
struct OpenFile: ~Copyable {
    private let descriptor: Int32
    private let status: stat

    /// - Throws: ``SystemError``: ENODEV for what is no regular file.
    init(_ path: String, in root: FileRoot) throws(SystemError) {
        let descriptor = try root.open(path)
        var status = stat()
        let code = fstat(descriptor, &status) == 0 ? 0 : errno
        guard code == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw SystemError(code == 0 ? ENODEV : code)
        }
        self.descriptor = descriptor
        self.status = status
    }

    deinit { close(descriptor) }

    /// In bytes.
    var size: Int { Int(status.st_size) }

    /// Another one whenever the file was written to.
    var etag: String {
        let nanoseconds = status.st_mtim.tv_sec * 1_000_000_000 + status.st_mtim.tv_nsec
        return "\"\(String(nanoseconds, radix: 16))-\(String(size, radix: 16))\""
    }

    /// All of it; nil when it has grown beyond `limit`.
    /// - Throws: ``SystemError``.
    func bytes(upTo limit: Int) throws(SystemError) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size)
        // One byte more shows whether there is more.
        var buffer = [UInt8](repeating: 0, count: min(limit, 1 << 20) + 1)
        while case let count = read(descriptor, &buffer, buffer.count), count != 0 {
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw SystemError(errno) }
            guard bytes.count + count <= limit else { return nil }
            bytes += buffer[..<count]
        }
        return bytes
    }
}
