import Formats
import HalcyonCoding
import HalcyonModel
import Kafka
import Redis

/// The registered presets in Redis, shared by all workers and gateways with the same topic prefix.
///
/// They are one hash, so that they are in one hash slot of a Redis Cluster and are read atomically. A field is named
/// after the preset. Its value is `VERSION JSON`, or `VERSION` after the preset was deleted, so that a version is never
/// used again. The hash has no TTL.
public struct PresetStore: Sendable {
    /// The maximum number of presets, including deleted ones.
    public static let most = 1000

    private let redis: RedisClient
    private let key: RedisArgument

    /// Creates a store that uses the given client. The caller owns the client and closes it.
    /// - Parameters:
    ///   - redis: The client.
    ///   - topics: The topics of the cluster, whose prefix is part of the key.
    public init(_ redis: RedisClient, topics: Topics) {
        self.redis = redis
        key = .string("halcyon:presets:{\(topics.prefix)}")
    }

    /// A preset in Redis.
    struct Entry: Sendable {
        /// The version, or the last version of a deleted preset.
        let version: Int64
        /// The JSON without name and version; nil if the preset was deleted.
        let contents: [UInt8]?

        /// Parses the value of a field.
        init?(_ value: [UInt8]) {
            let end = value.firstIndex(of: UInt8(ascii: " ")) ?? value.endIndex
            guard let version = Int64(String(decoding: value[..<end], as: UTF8.self)) else { return nil }
            self.version = version
            contents = end < value.endIndex ? Array(value[(end + 1)...]) : nil
        }
    }

    /// Returns all presets by name, including deleted ones.
    /// - Throws: `RedisError`.
    func entries() async throws(RedisError) -> [String: Entry] {
        let fields = try await redis.send("HGETALL", key).array ?? []
        var entries: [String: Entry] = [:]
        for index in stride(from: 0, to: fields.count - 1, by: 2) {
            // Fields of another form are ignored.
            if let name = fields[index].string, let entry = fields[index + 1].bytes.flatMap(Entry.init) {
                entries[name] = entry
            }
        }
        return entries
    }

    /// The outcome of storing a preset.
    public enum Outcome: Hashable, Sendable {
        /// The preset was stored with this version.
        case stored(version: Int64)
        /// The stored preset has the same contents, and keeps this version.
        case unchanged(version: Int64)
    }

    /// Stores a preset. Without a version of its own it gets the next one. If the contents are the same, it keeps its
    /// version.
    /// - Parameter preset: The preset, which the caller has checked.
    /// - Returns: The outcome with the version.
    /// - Throws: ``PresetError`` if the version is not higher than the last one, or there are too many presets;
    ///   `RedisError`.
    public func put(_ preset: Preset) async throws -> Outcome {
        let reply = try await redis.run(
            Self.putting, keys: [key],
            arguments: [
                .string(preset.name), .bytes(preset.contents),
                .integer(preset.hasOwnVersion ? Int(preset.version) : 0), .integer(Self.most),
            ])
        guard let parts = reply.array, parts.count == 2, let outcome = parts[0].string,
            let version = parts[1].string.flatMap({ Int64($0) })
        else { throw RedisError(.protocolError, "unexpected reply from the preset script: \(reply)") }
        switch outcome {
        case "stored": return .stored(version: version)
        case "unchanged": return .unchanged(version: version)
        case "old": throw PresetError.oldVersion(preset.name, last: version)
        default: throw PresetError.tooMany
        }
    }

    /// Deletes a preset. Its version is retained.
    /// - Parameter name: The name of the preset.
    /// - Returns: False if there is no such preset.
    /// - Throws: `RedisError`.
    public func delete(_ name: String) async throws(RedisError) -> Bool {
        try await redis.run(Self.deleting, keys: [key], arguments: [.string(name)]).integer == 1
    }

    /// Stores presets that Redis has lost. Presets that exist there are not changed.
    /// - Parameter presets: The presets with their versions.
    /// - Throws: `RedisError`.
    func restore(_ presets: [Preset]) async throws(RedisError) {
        for preset in presets {
            _ = try await redis.send(
                "HSETNX", key, .string(preset.name), .bytes(Array("\(preset.version) ".utf8) + preset.contents))
        }
    }

    // KEYS: the hash. ARGV: name, contents, version or 0 for the next one, maximum number of presets. Versions are at
    // most 2^53, the limit of exact integers in Lua.
    private static let putting = RedisScript(
        """
        local known = redis.call('HGET', KEYS[1], ARGV[1])
        local last, contents = 0, nil
        if known then
            local space = string.find(known, ' ', 1, true)
            last = tonumber(space and string.sub(known, 1, space - 1) or known) or 0
            contents = space and string.sub(known, space + 1)
        elseif redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then
            return {'full', '0'}
        end
        local version = tonumber(ARGV[3])
        if contents == ARGV[2] and (version == 0 or version == last) then
            return {'unchanged', string.format('%.0f', last)}
        end
        if version == 0 then version = last + 1 end
        if version <= last then return {'old', string.format('%.0f', last)} end
        redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f ', version) .. ARGV[2])
        return {'stored', string.format('%.0f', version)}
        """)

    // KEYS: the hash. ARGV: name.
    private static let deleting = RedisScript(
        """
        local known = redis.call('HGET', KEYS[1], ARGV[1])
        local space = known and string.find(known, ' ', 1, true)
        if not space then return 0 end
        redis.call('HSET', KEYS[1], ARGV[1], string.sub(known, 1, space - 1))
        return 1
        """)
}

/// The reason for which a preset was not changed.
public enum PresetError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The version is not higher than the last version of a preset with this name.
    case oldVersion(String, last: Int64)
    /// The maximum number of presets is reached.
    case tooMany
    /// The settings define the preset with this name.
    case isInSettings(String)

    /// The reason, with a remedy.
    public var description: String {
        switch self {
        case .oldVersion(let name, let last):
            "preset \(name): its last version is \(last); give a higher version, or none for the next one"
        case .tooMany: "there are \(PresetStore.most) presets, which is the maximum"
        case .isInSettings(let name):
            "preset \(name): the settings define it (presets.\(name)), so it can be changed only there"
        }
    }
}

/// Registers and deletes presets: changes Redis and notifies workers and gateways.
public struct PresetService: Sendable {
    private let store: PresetStore
    private let control: ControlPublisher
    private let isFixed: @Sendable (String) -> Bool

    /// Creates a service.
    /// - Parameters:
    ///   - store: The store of registered presets.
    ///   - control: The publisher of control messages.
    ///   - isFixed: A function that returns true if the settings define a preset. Such presets are not changed.
    public init(_ store: PresetStore, _ control: ControlPublisher, isFixed: @escaping @Sendable (String) -> Bool) {
        self.store = store
        self.control = control
        self.isFixed = isFixed
    }

    /// Registers a preset and notifies workers and gateways, even if it is unchanged, because an earlier notification
    /// may have failed.
    /// - Parameters:
    ///   - preset: The preset.
    ///   - reader: The decoder that checks the preset.
    /// - Returns: The outcome with the version.
    /// - Throws: ``InvalidPresetError``, ``PresetError``, `RedisError`; ``PresetNotBroadcast`` if the preset was
    ///   stored, but nobody was notified.
    public func put(_ preset: Preset, checkedBy reader: JobDecoder) async throws -> PresetStore.Outcome {
        guard !isFixed(preset.name) else { throw PresetError.isInSettings(preset.name) }
        try reader.check(preset)
        let outcome = try await store.put(preset)
        try await broadcast(preset.name)
        return outcome
    }

    /// Deletes a preset and notifies workers and gateways.
    /// - Parameter name: The name of the preset.
    /// - Returns: False if there is no such preset.
    /// - Throws: ``PresetError``, `RedisError`; ``PresetNotBroadcast`` if the preset was deleted, but nobody was
    ///   notified.
    public func delete(_ name: String) async throws -> Bool {
        guard !isFixed(name) else { throw PresetError.isInSettings(name) }
        let isDeleted = try await store.delete(name)
        try await broadcast(name)
        return isDeleted
    }

    private func broadcast(_ name: String) async throws(PresetNotBroadcast) {
        do throws(KafkaError) {
            try await control.publish(.preset(name))
        } catch {
            throw PresetNotBroadcast(name: name, reason: error)
        }
    }
}

/// The error of a change of a preset in Redis that workers and gateways could not be notified of. They notice it within
/// a minute.
public struct PresetNotBroadcast: Error, CustomStringConvertible {
    /// The name of the preset.
    public let name: String
    /// The error that prevented the notification.
    public let reason: KafkaError

    /// The error, with a remedy.
    public var description: String {
        "preset \(name) was changed in Redis, but workers and gateways were not notified; repeat the command, or wait a "
            + "minute: \(reason)"
    }
}

/// The options of ``PresetIndex``.
public struct PresetIndexOptions: Sendable {
    /// The maximum number of jobs of a preset. Those whose results expire first are removed; 0 for no index.
    public var mostEntries = 1_000_000
    /// The maximum size of a job in the index, in bytes.
    public var longestEntry = 4096

    /// Creates options with default values.
    public init() {}
}

/// The index of the jobs by which results were made with a preset, in Redis. Only jobs with a preset use it.
///
/// The sorted set `halcyon:preset:{PREFIX/NAME}` has the JSON of `JobBuilder.init(repeating:)` by the expiry of the
/// results in ms since 1970. It expires with the last of them.
public struct PresetIndex: Sendable {
    private let redis: RedisClient
    private let prefix: String
    private let options: PresetIndexOptions

    /// Creates an index that uses the given client. The caller owns the client and closes it.
    /// - Parameters:
    ///   - topics: the topics of the cluster, whose prefix is part of the key.
    public init(_ redis: RedisClient, topics: Topics, _ options: PresetIndexOptions = PresetIndexOptions()) {
        self.redis = redis
        prefix = topics.prefix
        self.options = options
    }

    /// True if jobs are added.
    public var isEnabled: Bool { options.mostEntries > 0 }

    /// Adds a job, unless it is too large.
    /// - Parameter expiresAt: the expiry of its results in seconds since 1970. If the job is in the index already, the
    ///   later expiry applies.
    /// - Throws: `RedisError`.
    public func add(_ job: [UInt8], to preset: String, until expiresAt: Double) async throws(RedisError) {
        guard isEnabled, job.count <= options.longestEntry else { return }
        _ = try await redis.run(
            Self.adding, keys: [key(preset)],
            arguments: [.bytes(job), .integer(Int((expiresAt * 1000).rounded(.up))), .integer(options.mostEntries)])
    }

    /// A position in the index. Jobs that are added during a list, because they were made again, are not part of it.
    public struct Cursor: Sendable {
        /// The expiry of the last job that was listed.
        fileprivate var score: Int
        /// The number of listed jobs with this expiry.
        fileprivate var skip: Int
        /// The last expiry at the start of the list.
        fileprivate var end: Int

        /// The position as text, which increases in the order of bytes.
        public var text: String {
            "\(Self.digits(score, 15))-\(Self.digits(skip, 9))-\(end)"
        }

        /// Parses the text; returns nil if it is malformed.
        public init?(_ text: String) {
            let parts = text.split(separator: "-").compactMap { Int($0) }
            guard parts.count == 3 else { return nil }
            (score, skip, end) = (parts[0], parts[1], parts[2])
        }

        fileprivate init(score: Int, skip: Int, end: Int) { (self.score, self.skip, self.end) = (score, skip, end) }

        private static func digits(_ number: Int, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
    }

    /// A part of a list of jobs.
    public struct Page: Sendable {
        /// The jobs, without their preset.
        public let jobs: [JobBuilder]
        /// The position after the page; nil at the end.
        public let next: Cursor?
    }

    /// Returns jobs of a preset whose results have not expired, in the order of their expiry.
    /// - Parameters:
    ///   - cursor: the position after the previous page; nil for the first page.
    ///   - count: the maximum number of jobs.
    /// - Throws: `RedisError`.
    public func page(of preset: String, after cursor: Cursor?, _ count: Int) async throws(RedisError) -> Page {
        var cursor = cursor ?? Cursor(score: Int(Timestamp.now.milliseconds) + 1, skip: 0, end: 0)
        if cursor.end == 0 {
            let last = try await redis.send(["ZRANGE", key(preset), -1, -1, "WITHSCORES"]).array ?? []
            guard last.count == 2, let end = last[1].string.flatMap({ Double($0) }) else {
                return Page(jobs: [], next: nil)
            }
            cursor.end = Int(end)
        }
        let reply =
            try await redis.send([
                "ZRANGEBYSCORE", key(preset), .integer(cursor.score), .integer(cursor.end), "WITHSCORES", "LIMIT",
                .integer(cursor.skip), .integer(count),
            ]).array ?? []
        var jobs: [JobBuilder] = []
        for place in stride(from: 0, to: reply.count - 1, by: 2) {
            let score = Int(reply[place + 1].string.flatMap { Double($0) } ?? 0)
            cursor.skip = score == cursor.score ? cursor.skip + 1 : 1
            cursor.score = score
            // Another release may have stored something else.
            if let json = reply[place].bytes, let job = try? JobBuilder(json: json, maximumSize: json.count) {
                jobs.append(job)
            }
        }
        return Page(jobs: jobs, next: reply.count < 2 * count ? nil : cursor)
    }

    /// Removes the jobs of a tenant from the indexes of all presets. All jobs are looked at, in steps.
    /// - Throws: `RedisError`. Jobs that were removed before the error are gone.
    public func removeAll(of tenant: String) async throws(RedisError) {
        // The prefix is not part of the pattern, in which some of its characters could have a meaning.
        try await redis.scanKeys(matching: "halcyon:preset:{*}") { (keys) async throws(RedisError) in
            for key in keys where key.hasPrefix("halcyon:preset:{\(prefix)/") {
                try await remove(.string(key), of: tenant)
            }
        }
    }

    private func remove(_ key: RedisArgument, of tenant: String) async throws(RedisError) {
        try await redis.scan(["ZSCAN", key]) { (page) async throws(RedisError) in
            let jobs = stride(from: 0, to: page.count - 1, by: 2).compactMap { page[$0].bytes }
            let own = jobs.filter { json in
                // Another release may have stored something else.
                let job = try? JobBuilder(json: json, maximumSize: json.count)
                return job?["tenant"] == tenant.json
            }
            if !own.isEmpty { _ = try await redis.send(["ZREM", key] + own.map { .bytes($0) }) }
        }
    }

    private func key(_ preset: String) -> RedisArgument { .string("halcyon:preset:{\(prefix)/\(preset)}") }

    // ZADD precedes all other writes, because Redis allows a script that has written to exceed maxmemory.
    private static let adding = RedisScript(
        """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        local known = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1])) or 0
        redis.call('ZADD', KEYS[1], string.format('%.0f', math.max(known, tonumber(ARGV[2]))), ARGV[1])
        redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
        redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[3])
        local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
        if last then redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last)) end
        return 1
        """)
}
