import CLinux
import Concurrency
import Glibc
import HalcyonModel
import Subprocess

/// A provider of files in the folders that the operator configured, and no others.
struct FileProvider: SourceProvider {
    private let roots: [FileRoot]
    var maximumBytes: Int

    /// Creates a provider.
    /// - Parameter roots: Absolute paths of folders.
    init(roots: [String], maximumBytes: Int) {
        self.roots = roots.map { FileRoot($0) }
        self.maximumBytes = maximumBytes
    }

    /// Reads a file.
    /// - Throws: ``JobError``: `forbidden` for a path that is under no root, leads out of its root, or is not a regular
    ///   file; `not_found`; `too_large`; `provider_error`.
    func fetch(_ file: FileSource, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        try await fetch(file, ifNoneMatch: known, range: nil)
    }

    /// Reads a file or a part of it.
    /// - Parameter range: The part; nil for everything. It ends with the file. The field Content-Range of the result
    ///   says which part it is, as in a response of HTTP.
    /// - Throws: Like ``fetch(_:ifNoneMatch:)``.
    func fetch(
        _ file: FileSource, ifNoneMatch known: Validators?, range: Range<Int>?
    ) async throws -> FetchResponse {
        guard let (root, path) = roots.lazy.compactMap({ root in root.path(of: file.path).map { (root, $0) } }).first
        else {
            throw JobError(
                .forbidden, "\(file.path) is not under any of the folders in sources.fileRoots",
                isRetryable: false)
        }
        let limit = maximumBytes
        return try await blocking { () throws(JobError) -> FetchResponse in
            let opened: OpenFile
            do throws(SystemError) {
                opened = try OpenFile(path, in: root)
            } catch {
                throw JobError(error, opening: file.path)
            }
            let validators = Validators(etag: opened.etag)
            if known == validators { return .notModified(.init()) }
            let size = opened.size
            let part = range?.clamped(to: 0..<size)
            guard part?.count ?? size <= limit else { throw JobError(tooLargeFor: limit) }
            let bytes: [UInt8]?
            do throws(SystemError) {
                bytes = try opened.bytes(of: part, upTo: limit)
            } catch {
                throw JobError(.providerError, "\(file.path): \(error)", cause: error)
            }
            guard let bytes else { throw JobError(tooLargeFor: limit) }
            var loaded = LoadedSource(body: bytes, validators: validators)
            if let part, !part.isEmpty {
                loaded.headers["Content-Range"] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(size)"
            }
            return .loaded(loaded)
        }
    }
}

extension JobError {
    fileprivate init(_ error: SystemError, opening path: String) {
        switch error.code {
        case ENOENT, ENOTDIR, ENAMETOOLONG: self.init(.notFound, "file not found: \(path)")
        case EACCES, EPERM: self.init(.forbidden, "\(path): \(error)")
        case EXDEV, ELOOP: self.init(.forbidden, "\(path) leads out of its folder in sources.fileRoots")
        case EISDIR, ENXIO, ENODEV: self.init(.forbidden, "\(path) is not a regular file")
        default: self.init(.providerError, "\(path): \(error)")
        }
        cause = error
    }
}

/// A folder under which files may be read.
struct FileRoot: Sendable {
    /// True if the kernel resolves paths (openat2, Linux 5.6). Otherwise each component is resolved here, and symbolic
    /// links are not followed.
    var usesKernel = true
    private let parts: [Substring]

    /// Creates a root.
    /// - Parameter path: The absolute path. It may contain symbolic links, because the operator chose it.
    init(_ path: String) {
        parts = path.split(separator: "/").filter { $0 != "." }
    }

    private var path: String { "/" + parts.joined(separator: "/") }

    /// Returns the part of an absolute path below this folder; nil if the path is not below it.
    func path(of file: String) -> String? {
        let names = file.split(separator: "/")
        guard names.count > parts.count, zip(names, parts).allSatisfy({ $0.utf8.elementsEqual($1.utf8) }) else {
            return nil
        }
        return names.dropFirst(parts.count).joined(separator: "/")
    }

    /// Opens the file at a path in the folder. The call does not wait for a writer if the file is a pipe.
    ///
    /// The path is resolved once and relative to the folder's own descriptor. Renaming folders or links at the same
    /// time cannot make it open a file elsewhere (openat2(2), RESOLVE_BENEATH).
    /// - Throws: ``SystemError``: EXDEV or ELOOP if the path leads out of the folder.
    func open(_ path: String) throws(SystemError) -> Int32 {
        let folder = Glibc.open(self.path, clinux_o_path | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw SystemError(errno) }
        defer { close(folder) }
        if usesKernel {
            // EAGAIN: a folder on the path was renamed during the call, which must be retried.
            for _ in 0..<64 {
                let file = clinux_open_beneath(folder, path, Self.flags)
                if file >= 0 { return file }
                if errno == ENOSYS || errno == EPERM { break }  // EPERM: seccomp filter of the container
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
            // With O_DIRECTORY, the error for a symbolic link does not say that it is one.
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

/// The error of a system call.
struct SystemError: Error, CustomStringConvertible {
    let code: Int32

    init(_ code: Int32) { self.code = code }

    var description: String { String(cString: strerror(code)) }
}

/// A regular file that is open for reading. Its methods block, so do not call them on the cooperative pool.
struct OpenFile: ~Copyable {
    private let descriptor: Int32
    private let status: stat

    /// Opens a file.
    /// - Throws: ``SystemError``: ENODEV if it is not a regular file.
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

    /// The size in bytes.
    var size: Int { Int(status.st_size) }

    /// The entity tag. It changes whenever the file is written to.
    var etag: String {
        let nanoseconds = status.st_mtim.tv_sec * 1_000_000_000 + status.st_mtim.tv_nsec
        return "\"\(String(nanoseconds, radix: 16))-\(String(size, radix: 16))\""
    }

    /// Reads a part of the file, or all of it.
    /// - Returns: The bytes. A part is shorter if the file has become shorter. nil if the whole file has grown beyond
    ///   `limit`.
    /// - Throws: ``SystemError``.
    func bytes(of part: Range<Int>? = nil, upTo limit: Int) throws(SystemError) -> [UInt8]? {
        guard let part else { return try allBytes(upTo: limit) }
        guard lseek(descriptor, part.lowerBound, SEEK_SET) >= 0 else { throw SystemError(errno) }
        let (bytes, failure) = DescriptorIO.readAll(part.count, from: descriptor)
        guard failure == 0 else { throw SystemError(failure) }
        return bytes
    }

    private func allBytes(upTo limit: Int) throws(SystemError) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size)
        // One byte more than the limit shows that the file is too large.
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
