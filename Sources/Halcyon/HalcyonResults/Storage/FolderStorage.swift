import Concurrency
import Formats
import Glibc
import Subprocess

/// A storage in a folder, which may be on a file system that several machines share.
///
/// An object is a file of its name and a file `NAME.record` beside it. Both are written to temporary files and renamed,
/// the record last. The expiry is the time of modification of the file, so that it is known without opening the record.
/// Temporary files that a crash has left behind are removed when their folder is listed.
final class FolderStorage: ObjectStorage {
    let isSwept = true
    private let root: String
    private let threads: ThreadPool
    /// The age in seconds of a temporary file whose writer must have crashed.
    private let draftLifetime: Int
    /// The number of calls that have not ended, although nobody waits for them any more: the file system hangs. Each
    /// holds its file in memory.
    private let abandoned = Lock(0)
    private static let mostAbandoned = 16

    /// The ending of the file with an object's record.
    private static let recordEnding = ".record"
    /// The ending of an incomplete file.
    private static let draftEnding = ".draft"

    /// Creates the folder unless it exists. The call blocks.
    /// - Parameters:
    ///   - root: The absolute path.
    ///   - draftLifetime: The age in seconds of a temporary file whose writer must have crashed.
    /// - Throws: ``StorageError``.
    init(at root: String, threads: Int = 4, draftLifetime: Int = 3600) throws(StorageError) {
        self.root = root
        self.draftLifetime = draftLifetime
        self.threads = ThreadPool(name: "results", threads: threads)
        do throws(StorageError) {
            try Self.makeFolders(root)
        } catch {
            self.threads.shutdown()
            throw error
        }
    }

    func close() async {
        await blocking { [threads] in threads.shutdown() }
    }

    // MARK: Objects

    func read(_ name: String, upTo limit: Int) async throws(StorageError) -> StorageObject? {
        try await perform { [self] () throws(StorageError) in
            let path = path(of: name)
            guard let record = try Self.contents(path + Self.recordEnding, upTo: 1 << 20, isUse: false),
                let body = try Self.contents(path, upTo: limit, isUse: true)
            else { return nil }
            return StorageObject(body: body, mediaType: "", record: record)
        }
    }

    func head(_ name: String) async throws(StorageError) -> StorageHead? {
        try await perform { [self] () throws(StorageError) in
            let path = path(of: name)
            var status = stat()
            guard let record = try Self.contents(path + Self.recordEnding, upTo: 1 << 20, isUse: false),
                stat(path, &status) == 0
            else { return nil }
            return StorageHead(record: record, bytes: Int(status.st_size))
        }
    }

    func write(_ object: StorageObject, as name: String, isDurable: Bool) async throws(StorageError) {
        try await perform { [self] () throws(StorageError) in
            let path = path(of: name)
            let folder = Self.folder(of: path)
            var attempts = 0
            while true {
                attempts += 1
                try Self.makeFolders(folder)
                do throws(StorageError) {
                    // Other programs may read the file, which therefore is complete before it gets its name. A record
                    // that a crash has damaged makes the object a miss.
                    try Self.replace(
                        path, with: object.body, expiresAt: object.expiresAt,
                        synchronizes: isDurable || !object.body.isEmpty)
                    try Self.replace(path + Self.recordEnding, with: object.record, synchronizes: isDurable)
                    if isDurable { try Self.synchronize(folder, O_DIRECTORY) }
                    return
                } catch {
                    // Another process has just removed the folder with its last object.
                    guard access(folder, F_OK) != 0, attempts < 3 else { throw error }
                }
            }
        }
    }

    func synchronize(_ name: String) async throws(StorageError) {
        try await perform { [self] () throws(StorageError) in
            let path = path(of: name)
            // The file has been synchronized by its writer.
            try Self.synchronize(path + Self.recordEnding)
            try Self.synchronize(Self.folder(of: path), O_DIRECTORY)
        }
    }

    func remove(_ names: [String]) async throws(StorageError) {
        try await perform { [self] () throws(StorageError) in
            for name in names {
                let path = path(of: name)
                // Without its record an object does not exist.
                for file in [path + Self.recordEnding, path] where unlink(file) != 0 && errno != ENOENT {
                    throw Self.error("remove", file)
                }
                // Fails while the folder has other files.
                rmdir(Self.folder(of: path))
            }
        }
    }

    // MARK: Lists

    func list(_ prefix: String, after last: String?) async throws(StorageError) -> [StorageEntry] {
        try await perform { [self] () throws(StorageError) in
            var entries: [StorageEntry] = []
            try collect("", prefix, after: last, &entries)
            return entries
        }
    }

    /// Adds the objects of a folder and of the folders in it, in the order of their names, up to a page.
    private func collect(
        _ folder: String, _ prefix: String, after last: String?, _ entries: inout [StorageEntry]
    ) throws(StorageError) {
        for file in try files(in: folder) {
            if entries.count == pageSize { return }
            let name = folder + file.name
            if file.isFolder {
                let path = name + "/"
                // Skips folders that contain no name with the prefix, or only names up to the last one.
                let isInPrefix = path.utf8.starts(with: prefix.utf8) || prefix.utf8.starts(with: path.utf8)
                let isDone = last.map { path.precedes($0) && !$0.utf8.starts(with: path.utf8) } ?? false
                if isInPrefix && !isDone { try collect(path, prefix, after: last, &entries) }
            } else if name.utf8.starts(with: prefix.utf8), last.map({ $0.precedes(name) }) ?? true {
                entries.append(
                    StorageEntry(name: name, bytes: file.bytes, usedAt: file.usedAt, expiresAt: file.expiresAt))
            }
        }
    }

    private struct File {
        let name: String
        let isFolder: Bool
        let bytes: Int
        let usedAt: Double
        let expiresAt: Double
    }

    /// The objects and folders in a folder, in the order in which names with a `/` after each folder are sorted.
    private func files(in folder: String) throws(StorageError) -> [File] {
        let path = path(of: folder)
        guard let stream = opendir(path) else {
            // Another process may have removed it.
            if errno == ENOENT { return [] }
            throw Self.error("list", path)
        }
        defer { closedir(stream) }
        var files: [File] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard !name.hasPrefix("."), !name.hasSuffix(Self.recordEnding) else { continue }
            var status = stat()
            guard fstatat(dirfd(stream), name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
            if name.hasSuffix(Self.draftEnding) {
                // The time of modification may be set already. That of the last change cannot be set.
                if status.st_ctim.tv_sec + draftLifetime <= time(nil) { unlinkat(dirfd(stream), name, 0) }
                continue
            }
            let kind = status.st_mode & S_IFMT
            guard kind == S_IFREG || kind == S_IFDIR else { continue }
            files.append(
                File(
                    name: name, isFolder: kind == S_IFDIR, bytes: Int(status.st_size),
                    usedAt: Double(status.st_atim.tv_sec) + Double(status.st_atim.tv_nsec) / 1e9,
                    expiresAt: Double(status.st_mtim.tv_sec)))
        }
        return files.sorted { ($0.isFolder ? $0.name + "/" : $0.name).precedes($1.isFolder ? $1.name + "/" : $1.name) }
    }

    func space() async throws(StorageError) -> StorageSpace? {
        try await perform { [root] () throws(StorageError) in
            var status = statvfs()
            guard statvfs(root, &status) == 0 else { throw Self.error("inspect", root) }
            let unit = Int(status.f_frsize)
            return StorageSpace(free: Int(status.f_bavail) * unit, total: Int(status.f_blocks) * unit)
        }
    }

    // MARK: Files

    private func path(of name: String) -> String { "\(root)/\(name)" }

    private static func folder(of path: String) -> String {
        String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
    }

    /// Reads a file; nil if it does not exist.
    /// - Parameter isUse: True to set the time of its last use.
    private static func contents(_ path: String, upTo limit: Int, isUse: Bool) throws(StorageError) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw error("open", path)
        }
        defer { Glibc.close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw error("read", path) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size <= limit else {
            throw StorageError(.tooLarge, "\(path) is not a file of at most \(limit) bytes")
        }
        let (bytes, failure) = DescriptorIO.readAll(Int(status.st_size), from: descriptor)
        guard failure == 0 else { throw error("read", path, failure) }
        if isUse {
            // The kernel does not record each use on file systems that are mounted with noatime or relatime.
            var now = timespec()
            clock_gettime(CLOCK_REALTIME, &now)
            futimens(descriptor, [now, status.st_mtim])
        }
        return bytes
    }

    /// Writes a file beside the given one and renames it.
    /// - Parameter synchronizes: True if the file has to be on the disk before it is renamed.
    private static func replace(
        _ path: String, with bytes: [UInt8], expiresAt: Double? = nil, synchronizes: Bool
    ) throws(StorageError) {
        let draft = "\(path)-\(String(UInt64.random(in: .min ... .max), radix: 16))\(draftEnding)"
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw error("create", draft) }
        var failure = DescriptorIO.writeAll(bytes, to: descriptor)
        if let expiresAt {
            var now = timespec()
            clock_gettime(CLOCK_REALTIME, &now)
            // Rounded up: a result that has not expired is never deleted.
            let end = timespec(tv_sec: Int(expiresAt.rounded(.up)), tv_nsec: 0)
            if failure == 0, futimens(descriptor, [now, end]) != 0 { failure = errno }
        }
        if failure == 0, synchronizes, fsync(descriptor) != 0 { failure = errno }
        // close() may be the first call to report a full disk.
        if Glibc.close(descriptor) != 0, failure == 0 { failure = errno }
        if failure == 0, rename(draft, path) != 0 { failure = errno }
        guard failure == 0 else {
            unlink(draft)
            throw error("write", path, failure)
        }
    }

    /// Makes a file, or the names in a folder, survive a crash of the machine.
    private static func synchronize(_ path: String, _ flags: Int32 = 0) throws(StorageError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | flags)
        guard descriptor >= 0 else { throw error("open", path) }
        defer { Glibc.close(descriptor) }
        guard fsync(descriptor) == 0 else { throw error("write", path) }
    }

    /// Creates a folder and those above it.
    private static func makeFolders(_ path: String) throws(StorageError) {
        if mkdir(path, 0o755) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, path.contains("/"), path != "/" else { throw error("create", path) }
        try makeFolders(folder(of: path))
        guard mkdir(path, 0o755) == 0 || errno == EEXIST else { throw error("create", path) }
    }

    private static func error(_ operation: String, _ path: String, _ code: Int32 = errno) -> StorageError {
        let kind: StorageError.Kind =
            switch code {
            case ENOSPC, EDQUOT: .full
            case EACCES, EPERM, EROFS: .forbidden
            case ENOTDIR, ENAMETOOLONG, ELOOP: .misconfigured
            default: .unavailable
            }
        return StorageError(kind, "cannot \(operation) \(path): \(String(cString: strerror(code)))")
    }

    private func perform<Success: Sendable>(
        _ work: @escaping @Sendable () throws(StorageError) -> Success
    ) async throws(StorageError) -> Success {
        guard abandoned.withLock({ $0 }) < Self.mostAbandoned else {
            throw StorageError(.unavailable, "\(root) does not respond")
        }
        let call = Lock(Call.waiting)
        let result: Result<Success, StorageError>
        do {
            result = try await withTaskCancellationHandler {
                try await threads.run { [abandoned] in
                    let result: Result<Success, StorageError>
                    do throws(StorageError) { result = .success(try work()) } catch { result = .failure(error) }
                    if call.withLock({ $0.end() }) { abandoned.withLock { $0 -= 1 } }
                    return result
                }
            } onCancel: {
                if call.withLock({ $0.abandon() }) { abandoned.withLock { $0 += 1 } }
            }
        } catch {
            throw StorageError(.cancelled, "the result store is closed")
        }
        return try result.get()
    }

    /// The state of a call that runs on a thread of the pool.
    private enum Call {
        case waiting, abandoned, ended

        /// Ends the call. Returns true if nobody waits for it any more.
        mutating func end() -> Bool {
            defer { self = .ended }
            return self == .abandoned
        }

        /// Returns true if the call has not ended.
        mutating func abandon() -> Bool {
            guard self == .waiting else { return false }
            self = .abandoned
            return true
        }
    }
}

extension String {
    /// True if this text is before another one in the order of their UTF-8 bytes.
    fileprivate func precedes(_ other: String) -> Bool { utf8.lexicographicallyPrecedes(other.utf8) }
}
