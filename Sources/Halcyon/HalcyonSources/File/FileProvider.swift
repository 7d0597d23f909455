import CLinux
import Glibc
import HalcyonModel
import Threads

/// Reads files under the folders that the operator named, and no others.
struct FileProvider: SourceProvider {
    private let roots: [FileRoot]
    var maximumBytes: Int

    /// - Parameter roots: absolute paths of folders.
    init(roots: [String], maximumBytes: Int) {
        self.roots = roots.map { FileRoot($0) }
        self.maximumBytes = maximumBytes
    }

    /// - Throws: ``Failure`` `forbidden` for what lies under no root, leads out of it, or is no regular file; `not_found`;
    ///   `too_large`; `provider_error`.
    func fetch(_ file: FileSource, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        guard let (root, path) = roots.lazy.compactMap({ root in root.path(of: file.path).map { (root, $0) } }).first
        else {
            throw Failure(
                .forbidden, "\(file.path) lies under none of the folders in sources.fileRoots",
                isRetryable: false)
        }
        let limit = maximumBytes
        return try await blocking { () throws(Failure) -> FetchResponse in
            let opened: OpenFile
            do throws(SystemError) {
                opened = try OpenFile(path, in: root)
            } catch {
                throw Failure(error, opening: file.path)
            }
            let validators = Validators(etag: opened.etag)
            if known == validators { return .notModified(.init()) }
            guard opened.size <= limit else { throw Failure(tooLargeFor: limit) }
            let bytes: [UInt8]?
            do throws(SystemError) {
                bytes = try opened.bytes(upTo: limit)
            } catch {
                throw Failure(.providerError, "\(file.path): \(error)", cause: error)
            }
            guard let bytes else { throw Failure(tooLargeFor: limit) }
            return .loaded(LoadedSource(body: bytes, validators: validators))
        }
    }
}

extension Failure {
    fileprivate init(_ error: SystemError, opening path: String) {
        switch error.code {
        case ENOENT, ENOTDIR, ENAMETOOLONG: self.init(.notFound, "there is no file \(path)")
        case EACCES, EPERM: self.init(.forbidden, "\(path): \(error)")
        case EXDEV, ELOOP: self.init(.forbidden, "\(path) leads out of its folder in sources.fileRoots")
        case EISDIR, ENXIO, ENODEV: self.init(.forbidden, "\(path) is no regular file")
        default: self.init(.providerError, "\(path): \(error)")
        }
        cause = error
    }
}

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
