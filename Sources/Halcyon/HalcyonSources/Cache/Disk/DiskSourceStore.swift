import Concurrency
import Formats
import Glibc
import HalcyonCoordination
import Hashing

/// A store in files on the local disk with a byte limit and LRU eviction. Entries outlive the process.
final class DiskSourceStore: SourceStore {
    private let folder: DiskCacheDirectory
    /// The threads for file operations. All operations on a name run on the same thread, one after another.
    private let threads: [ThreadPool]
    /// The files and their sizes.
    private let files: Lock<LRUCache<String, Int>>
    /// The latest purges, by file. Data that was requested before its purge is not stored.
    private let purges = Lock(LRUCache<String, LocalPurge>(capacity: 10_000))
    private let purgeRetention: Duration

    /// A purge that this process was notified of.
    private struct LocalPurge {
        /// The time of the purge in microseconds since 1970.
        let time: Int
        let receivedAt: ContinuousClock.Instant
    }

    /// Locks a folder under `path` and loads the entries that an earlier process left there. The call blocks.
    /// - Parameters:
    ///   - capacity: The byte limit of all files together.
    ///   - purgeRetention: The time for which a purge is remembered. Afterwards, data without a fencing token is stored
    ///     again. The default is the time for which Redis remembers a purge.
    /// - Throws: ``DiskError`` if the folder cannot be created or locked.
    init(
        under path: String, capacity: Int, purgeRetention: Duration = .milliseconds(FencingTokens.memory)
    ) throws(DiskError) {
        self.purgeRetention = purgeRetention
        folder = try DiskCacheDirectory(under: path)
        threads = (0..<2).map { ThreadPool(name: "source-disk-\($0)", threads: 1) }
        var files = LRUCache<String, Int>(capacity: capacity)
        for file in folder.files().sorted(by: { $0.lastUse < $1.lastUse }) {
            let gone = files.insert(file.bytes, for: file.name, cost: file.bytes)
            for (name, _) in gone { folder.remove(name) }
            if file.bytes > capacity { folder.remove(file.name) }
        }
        self.files = Lock(files)
    }

    /// The total size of the files in bytes.
    var bytes: Int { files.withLock { $0.cost } }

    /// Stops the threads and unlocks the folder. The call blocks.
    func close() {
        for thread in threads { thread.shutdown() }
        folder.leave()
    }

    func find(_ key: String) async throws -> FoundEntry? {
        let name = Self.name(of: key)
        guard files.withLock({ $0.value(for: name) }) != nil else { return nil }
        return try await thread(of: name).run { [self] in
            let file = try folder.read(name).flatMap { DiskFile($0) }
            let now = Timestamp.now.seconds
            guard let file, file.key == key, now < file.keptAt + file.lifetime else {
                // The file is damaged, belongs to another key, or has expired.
                forget(name)
                return nil
            }
            // The age is never negative, even if the clock was set back.
            return FoundEntry(entry: file.entry, residentTime: max(0, now - file.keptAt), fence: file.fence)
        }
    }

    func store(_ entry: SourceEntry, as key: String, for seconds: Double, _ terms: StoreOptions) async throws -> Bool {
        let name = Self.name(of: key)
        return try await thread(of: name).run { [self] in
            guard !isPurged(name, before: terms.oldestFence) else { return false }
            let file = DiskFile(
                key: key, keptAt: Timestamp.now.seconds, lifetime: seconds, fence: terms.oldestFence, entry: entry
            ).bytes
            let gone = files.withLock { $0.insert(file.count, for: name, cost: file.count) }
            for (other, _) in gone where other != name { folder.remove(other) }
            guard file.count <= files.withLock({ $0.capacity }) else {
                folder.remove(name)
                return false
            }
            do {
                try write(file, as: name)
            } catch {
                forget(name)
                throw error
            }
            // Another entry may have evicted this one meanwhile, before its file existed.
            if files.withLock({ $0.peek(name) != nil }) { return true }
            folder.remove(name)
            return false
        }
    }

    func remove(_ key: String) async throws {
        let name = Self.name(of: key)
        try await thread(of: name).run { [self] in forget(name) }
    }

    /// Removes an entry, and does not store data that was requested before the purge.
    /// - Parameters:
    ///   - time: The time of the purge in microseconds since 1970, which is comparable with fencing tokens.
    ///   - keepsNewer: True to keep an entry that was requested after the purge.
    func purge(_ key: String, at time: Int, keepsNewer: Bool) async throws {
        let name = Self.name(of: key)
        let purge = LocalPurge(time: time, receivedAt: .now)
        purges.withLock { _ = $0.insert(purge, for: name, cost: 1) }
        try await thread(of: name).run { [self] in
            if keepsNewer, let file = try folder.read(name).flatMap({ DiskFile($0) }), file.fence >= time { return }
            forget(name)
        }
    }

    /// True if a file was purged after the request for its data. As in Redis, data without a fencing token is older
    /// than any purge that is remembered.
    private func isPurged(_ name: String, before fence: Int) -> Bool {
        guard let purge = purges.withLock({ $0.peek(name) }), fence < purge.time else { return false }
        return fence > 0 || purge.receivedAt.duration(to: .now) < purgeRetention
    }

    /// Writes a file. If the disk is full, evicts some entries and tries once more.
    private func write(_ file: [UInt8], as name: String) throws(DiskError) {
        do throws(DiskError) {
            try folder.write(file, as: name)
        } catch {
            guard error.isFull else { throw error }
            let gone = files.withLock { files in files.evict(toCost: files.cost - max(file.count, files.cost / 10)) }
            for (other, _) in gone { folder.remove(other) }
            guard !gone.contains(where: { $0.key == name }) else { throw error }
            try folder.write(file, as: name)
        }
    }

    private func forget(_ name: String) {
        files.withLock { _ = $0.remove(name) }
        folder.remove(name)
    }

    private func thread(of name: String) -> ThreadPool { threads[name.utf8.last.map { Int($0) % threads.count } ?? 0] }

    private static func name(of key: String) -> String { String(SHA256.hash(Array(key.utf8)).description.prefix(32)) }
}

/// An entry as a file: key, time of storage, lifetime, fencing token, metadata and bytes, with a checksum.
///
/// All numbers are little-endian:
///
///     8 bytes   HALCYON2
///     32        SHA-256 of everything that follows
///     8, 8      the time of storage in milliseconds since 1970, and the lifetime in milliseconds
///     4, 4      the lengths of the next two fields
///     8         the fencing token
///     …         the key, the metadata (JSON), the source's bytes
///
/// Files that begin with HALCYON1 have no fencing token, which counts as 0.
struct DiskFile: Sendable {
    private static let magic = Array("HALCYON2".utf8)
    private static let magicWithoutFence = Array("HALCYON1".utf8)
    private static let headSize = 72
    private static let headSizeWithoutFence = 64

    let key: String
    let keptAt: Double
    let lifetime: Double
    let fence: Int
    let entry: SourceEntry

    /// The content of the file.
    var bytes: [UInt8] {
        let (key, description) = (Array(key.utf8), entry.description)
        var rest: [UInt8] = []
        rest.reserveCapacity(32 + key.count + description.count + entry.body.count)
        for number in [keptAt, lifetime] { rest.append(Int64((number * 1000).rounded())) }
        for count in [key.count, description.count] { rest.append(Int32(count)) }
        rest.append(Int64(fence))
        rest += key
        rest += description
        rest += entry.body
        return Self.magic + SHA256.hash(rest).bytes + rest
    }

    /// Creates a file.
    init(key: String, keptAt: Double, lifetime: Double, fence: Int, entry: SourceEntry) {
        self.key = key
        self.keptAt = keptAt
        self.lifetime = lifetime
        self.fence = fence
        self.entry = entry
    }

    /// Parses a file. Returns nil if it is truncated, damaged or of another type.
    init?(_ bytes: [UInt8]) {
        let hasFence = bytes.starts(with: Self.magic)
        guard hasFence || bytes.starts(with: Self.magicWithoutFence) else { return nil }
        let headSize = hasFence ? Self.headSize : Self.headSizeWithoutFence
        guard bytes.count >= headSize else { return nil }
        let checksum = bytes.withUnsafeBytes { SHA256.hash(UnsafeRawBufferPointer(rebasing: $0[40...])) }
        guard checksum.bytes.elementsEqual(bytes[8..<40]) else { return nil }
        let (keyLength, descriptionLength) = (bytes.integer(at: 56, bytes: 4), bytes.integer(at: 60, bytes: 4))
        let descriptionStart = headSize + keyLength
        let bodyStart = descriptionStart + descriptionLength
        guard bodyStart <= bytes.count,
            let entry = SourceEntry(
                description: Array(bytes[descriptionStart..<bodyStart]), body: Array(bytes[bodyStart...]))
        else { return nil }
        key = String(decoding: bytes[headSize..<descriptionStart], as: UTF8.self)
        keptAt = Double(bytes.integer(at: 40, bytes: 8)) / 1000
        lifetime = Double(bytes.integer(at: 48, bytes: 8)) / 1000
        fence = hasFence ? bytes.integer(at: 64, bytes: 8) : 0
        self.entry = entry
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }

    fileprivate func integer(at place: Int, bytes count: Int) -> Int {
        self[place..<place + count].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
