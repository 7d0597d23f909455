import Glibc
import Subprocess

/// A cache folder that this process owns while it runs. Other processes on the machine use other folders.
final class DiskCacheDirectory: Sendable {
    /// The path of the folder.
    let path: String
    private let lock: Int32

    /// Locks the first free folder `0` to `63` under a path, and creates missing folders.
    /// - Throws: ``DiskError``.
    init(under parent: String) throws(DiskError) {
        try Self.make(parent)
        for number in 0..<64 {
            let path = "\(parent)/\(number)"
            try Self.make(path)
            let descriptor = open("\(path)/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw DiskError("\(path)/lock", errno) }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                close(descriptor)
                continue
            }
            self.path = path
            lock = descriptor
            return
        }
        throw DiskError("\(parent): all 64 cache folders are in use by other processes", EBUSY)
    }

    deinit { close(lock) }

    /// Unlocks the folder for other processes. A child that is just being started may hold the lock a little longer.
    func leave() { flock(lock, LOCK_UN) }

    private static func make(_ path: String) throws(DiskError) {
        guard mkdir(path, 0o700) != 0, errno != EEXIST else { return }
        throw DiskError(path, errno)
    }

    /// Returns the files in all subfolders: name, size in bytes and last use in nanoseconds since 1970. Removes
    /// incomplete files of earlier processes.
    func files() -> [(name: String, bytes: Int, lastUse: Int)] {
        var files: [(String, Int, Int)] = []
        for subfolder in Self.names(in: path) where subfolder.utf8.count == 2 {
            for name in Self.names(in: "\(path)/\(subfolder)") {
                let file = "\(path)/\(subfolder)/\(name)"
                guard !name.hasSuffix(Self.unfinished) else {
                    unlink(file)
                    continue
                }
                var status = stat()
                guard lstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
                files.append(
                    (name, Int(status.st_size), status.st_mtim.tv_sec * 1_000_000_000 + status.st_mtim.tv_nsec))
            }
        }
        return files
    }

    /// Reads a file; nil if it does not exist.
    /// - Throws: ``DiskError``.
    func read(_ name: String) throws(DiskError) -> [UInt8]? {
        let path = place(of: name)
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw DiskError(path, errno)
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw DiskError(path, errno) }
        // Records the use, so that the LRU order survives a restart.
        Self.markUsed(descriptor)
        let (bytes, failure) = DescriptorIO.readAll(Int(status.st_size), from: descriptor)
        guard failure == 0 else { throw DiskError(path, failure) }
        return bytes
    }

    /// Writes a temporary file and renames it when it is complete, so that readers never see partial content.
    /// - Throws: ``DiskError``; the old file is then unchanged.
    func write(_ bytes: [UInt8], as name: String) throws(DiskError) {
        let path = place(of: name)
        try Self.make(String(path.dropLast(name.utf8.count + 1)))
        let draft = "\(path)-\(String(UInt64.random(in: .min ... .max), radix: 16))\(Self.unfinished)"
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw DiskError(draft, errno) }
        var failure = DescriptorIO.writeAll(bytes, to: descriptor)
        Self.markUsed(descriptor)
        // close() may be the first call to report a full disk.
        if close(descriptor) != 0, failure == 0 { failure = errno }
        if failure == 0, rename(draft, path) != 0 { failure = errno }
        guard failure == 0 else {
            unlink(draft)
            throw DiskError(path, failure)
        }
    }

    /// Removes a file if it exists.
    func remove(_ name: String) { unlink(place(of: name)) }

    /// Sets the last use of a file to the current time in nanoseconds. The kernel's own timestamps have a resolution of
    /// some milliseconds.
    private static func markUsed(_ descriptor: Int32) {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        futimens(descriptor, [now, now])
    }

    private static let unfinished = ".new"

    private func place(of name: String) -> String { "\(path)/\(name.prefix(2))/\(name)" }

    private static func names(in path: String) -> [String] {
        guard let stream = opendir(path) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names
    }
}

/// An error of a file operation, with the path.
struct DiskError: Error, CustomStringConvertible {
    /// The errno(3) value.
    let code: Int32
    private let place: String

    init(_ place: String, _ code: Int32) {
        self.place = place
        self.code = code
    }

    /// True if the disk or the disk quota is full.
    var isFull: Bool { code == ENOSPC || code == EDQUOT }

    var description: String { "\(place): \(String(cString: strerror(code)))" }
}
