import Glibc

/// A folder that belongs to this process for as long as it lives: the others on the machine take others.
final class Folder: Sendable {
    /// Where it is.
    let path: String
    private let lock: Int32

    /// Takes the first free one of `0` to `63` under a path, and makes what is missing of it.
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
        throw DiskError("\(parent): 64 other processes keep sources there", EBUSY)
    }

    deinit { close(lock) }

    /// Lets another process have it. A child that is just being started may hold the descriptor for a moment longer.
    func leave() { flock(lock, LOCK_UN) }

    private static func make(_ path: String) throws(DiskError) {
        guard mkdir(path, 0o700) != 0, errno != EEXIST else { return }
        throw DiskError(path, errno)
    }

    /// The files of all its subfolders: name, bytes on disk and last use, in nanoseconds since 1970. What a process left half
    /// written is removed.
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

    /// A file's bytes; nil when there is none.
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
        // What is used last goes last, also after a restart.
        Self.markUsed(descriptor)
        var count = 0
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(status.st_size)) { buffer, initialized in
            while count < buffer.count {
                let more = Glibc.read(descriptor, buffer.baseAddress! + count, buffer.count - count)
                if more < 0, errno == EINTR { continue }
                if more < 0 { failure = errno }
                if more <= 0 { break }
                count += more
            }
            initialized = count
        }
        guard failure == 0 else { throw DiskError(path, failure) }
        return bytes
    }

    /// Writes a file beside its place and moves it there when it is whole: nobody ever reads half of it.
    /// - Throws: ``DiskError``; then nothing has changed.
    func write(_ bytes: [UInt8], as name: String) throws(DiskError) {
        let path = place(of: name)
        try Self.make(String(path.dropLast(name.utf8.count + 1)))
        let draft = "\(path)-\(String(UInt64.random(in: .min ... .max), radix: 16))\(Self.unfinished)"
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw DiskError(draft, errno) }
        var failure = writeAll(bytes, to: descriptor)
        Self.markUsed(descriptor)
        // A full disk may show only now.
        if close(descriptor) != 0, failure == 0 { failure = errno }
        if failure == 0, rename(draft, path) != 0 { failure = errno }
        guard failure == 0 else {
            unlink(draft)
            throw DiskError(path, failure)
        }
    }

    /// Removes a file, if it is there.
    func remove(_ name: String) { unlink(place(of: name)) }

    /// Sets a file's last use to now, in nanoseconds: the kernel's own stamps are the same for all that is used within one of its
    /// ticks, some milliseconds.
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

/// Why the disk does not do what it should.
struct DiskError: Error, CustomStringConvertible {
    /// errno(3).
    let code: Int32
    private let place: String

    init(_ place: String, _ code: Int32) {
        self.place = place
        self.code = code
    }

    /// Whether there is no more room.
    var isFull: Bool { code == ENOSPC || code == EDQUOT }

    var description: String { "\(place): \(String(cString: strerror(code)))" }
}

/// Writes all of the bytes, however many calls that takes.
/// - Returns: 0, or errno(3) of the call that failed.
func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
    bytes.withUnsafeBytes { buffer in
        var count = 0
        while count < buffer.count {
            let more = write(descriptor, buffer.baseAddress! + count, buffer.count - count)
            if more < 0, errno == EINTR { continue }
            // None of at least one byte: the same call would give the same again.
            guard more != 0 else { return EIO }
            guard more > 0 else { return errno }
            count += more
        }
        return 0
    }
}
