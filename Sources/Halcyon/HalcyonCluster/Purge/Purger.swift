import Formats
import HalcyonCoding
import HalcyonCoordination
import HalcyonModel
import HalcyonResults
import Kafka
import Redis

/// Removes results from Redis, and prevents work in flight from storing them again. It needs no worker.
///
/// Removing a result and raising the minimum fencing token are one step. Several results are removed in separate steps.
/// If one fails, some results are gone, and repeating the purge removes the rest.
public struct Purger: Sendable {
    private let redis: RedisClient
    private let tags: TagIndex
    private let quotas: QuotaStore

    /// Creates a purger that uses the given client. The caller owns the client and closes it.
    public init(_ redis: RedisClient) {
        self.redis = redis
        tags = TagIndex(redis)
        quotas = QuotaStore(redis)
    }

    /// The maximum number of results removed in one command, because Redis is blocked meanwhile.
    private static let step = 200

    /// Removes the results that the purge selects.
    /// - Returns: the number of results removed.
    /// - Throws: ``RedisError``. Results that were removed before the error are gone.
    public func run(_ purge: Purge) async throws(RedisError) -> Int {
        switch purge.target {
        case .source(let source):
            try await delete(
                sourceOf: SourceKeys(sourceHash: SourceRequest(source, tenant: purge.tenant).sourceHash), purge.tenant)
        case .key(let key): try await delete([key], purge.tenant)
        case .tag(let tag): try await delete(tag: tag, purge.tenant)
        case .tenant(let tenant): try await delete(tenant: tenant)
        }
    }

    private func delete(sourceOf keys: SourceKeys, _ tenant: String?) async throws(RedisError) -> Int {
        let begun = try await begin(keys, [keys.source, keys.copy], item: nil, listing: true)
        var count = 0
        for start in stride(from: 0, to: begun.names.count, by: Self.step) {
            let names = begun.names[start..<min(start + Self.step, begun.names.count)]
            let reply = try await redis.run(
                PurgeScripts.remove,
                keys: [.string(keys.fences), .string(keys.results)] + names.map { .string(keys.result($0)) })
            let gone = Self.removed(reply)
            await strike(gone, tenant)
            count += gone.count
        }
        return count
    }

    private func delete(tag: String, _ tenant: String?) async throws(RedisError) -> Int {
        let all = try await tags.purge(tag, of: tenant)
        var count = 0
        for start in stride(from: 0, to: all.count, by: Self.step) {
            let keys = Array(all[start..<min(start + Self.step, all.count)])
            count += try await delete(keys.compactMap { ResultKey($0) }, tenant)
            try await tags.remove(keys, from: tag, of: tenant)
        }
        return count
    }

    /// Removes all results of a tenant. There is no index of them, so all keys of Redis are looked at, in steps.
    ///
    /// SCAN returns each key that is there from the beginning to the end. A result that is stored meanwhile is removed
    /// by its job, because the tenant is marked as purged before.
    private func delete(tenant: String) async throws(RedisError) -> Int {
        try await tags.purge(tenant: tenant)
        var count = 0
        try await redis.scanKeys(matching: "halcyon:{*}:*") { (names) async throws(RedisError) in
            let keys = names.compactMap { ResultKey($0) }
            let tenants = try await redis.pipeline(keys.map { ["HGET", .string($0.description), "tenant"] })
            count += try await remove(zip(keys, tenants).filter { $0.1.string == tenant }.map(\.0), of: tenant)
        }
        return count
    }

    /// Removes results by their keys.
    /// - Returns: the number of results removed.
    /// - Throws: ``RedisError``. Results that were removed before the error are gone.
    func remove(_ keys: [ResultKey], of tenant: String?) async throws(RedisError) -> Int {
        var count = 0
        for start in stride(from: 0, to: keys.count, by: Self.step) {
            count += try await delete(Array(keys[start..<min(start + Self.step, keys.count)]), tenant)
        }
        return count
    }

    /// Removes each result in its own step, concurrently.
    private func delete(_ keys: [ResultKey], _ tenant: String?) async throws(RedisError) -> Int {
        let results = await withTaskGroup(of: Result<Int, RedisError>.self) { group in
            for key in keys {
                group.addTask {
                    do throws(RedisError) {
                        let begun = try await begin(
                            SourceKeys(sourceHash: key.sourceHash), [key.description],
                            item: key.variantHash, listing: false)
                        await strike(begun.gone, tenant)
                        return .success(begun.gone.count)
                    } catch {
                        return .failure(error)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        var count = 0
        for result in results { count += try result.get() }
        return count
    }

    /// A result that was removed.
    private typealias Gone = (key: String, storedAt: String)

    private func begin(
        _ keys: SourceKeys, _ going: [String], item: String?, listing: Bool
    ) async throws(RedisError) -> (names: [String], gone: [Gone]) {
        let reply = try await redis.run(
            PurgeScripts.begin, keys: [.string(keys.fences), .string(keys.results)] + going.map { .string($0) },
            arguments: [.string(item ?? ""), listing ? "list" : ""])
        guard let parts = reply.array, parts.count == 2, let names = parts[0].array else {
            throw RedisError(.protocolError, "unexpected reply from the purge script: \(reply)")
        }
        return (names.compactMap(\.string), Self.removed(parts[1]))
    }

    private static func removed(_ reply: RedisValue) -> [Gone] {
        let words = reply.array?.compactMap(\.string) ?? []
        return stride(from: 0, to: words.count - 1, by: 2).map { (words[$0], words[$0 + 1]) }
    }

    /// Subtracts removed results from the tenant's quota usage. Errors are ignored.
    private func strike(_ gone: [Gone], _ tenant: String?) async {
        for result in gone {
            // The purge has succeeded. The usage is too high until the removed results would have expired.
            try? await quotas.remove(result.key, result.storedAt, in: ResultCache.quota(of: tenant))
        }
    }
}

/// The scripts of a purge. All keys of a script are in one hash slot.
enum PurgeScripts {
    /// Removes results and other keys, and prevents work in flight from storing them again (``FencingTokens/purge``).
    ///
    /// KEYS: fences, index of results, keys to remove. ARGV: the item to purge, or an empty string for all items of the
    /// source; `list` to return the index. Returns the names in the index, followed by the key and `storedAt` of each
    /// removed result.
    ///
    /// UNLINK precedes all other writes, because Redis allows a script that has written to exceed maxmemory.
    static let begin = RedisScript(
        removing + FencingTokens.purge + """
            local gone = remove()
            purge(KEYS[1], ARGV[1] ~= '' and ARGV[1] or nil)
            return {ARGV[2] == 'list' and redis.call('ZRANGE', KEYS[2], 0, -1) or {}, gone}
            """)

    /// Removes results. KEYS: fences, index of results, results. Returns the key and `storedAt` of each removed result.
    static let remove = RedisScript(removing + "return remove()")

    private static let removing = """
        local function remove()
          local gone = {}
          for place = 3, #KEYS do
            local key = KEYS[place]
            local name = string.match(key, '}:(.*)$')
            if name ~= 'source' and name ~= 'copy' then
              local stored = redis.call('HGET', key, 'storedAt')
              if stored then
                table.insert(gone, key)
                table.insert(gone, stored)
              end
            end
            redis.call('UNLINK', key)
            redis.call('ZREM', KEYS[2], name)
          end
          return gone
        end

        """
}

/// Runs a complete purge: removes results from Redis and the result store, notifies workers, and publishes an event.
public struct PurgeService: Sendable {
    private let redis: RedisClient
    private let store: ResultStore?
    private let producer: Producer
    private let topics: Topics

    /// Creates a service that uses the given clients. The caller owns them and closes them.
    public init(_ redis: RedisClient, _ store: ResultStore?, _ producer: Producer, topics: Topics) {
        self.redis = redis
        self.store = store
        self.producer = producer
        self.topics = topics
    }

    /// Removes the results that the purge selects. It needs no worker.
    /// - Returns: the purge and the number of results removed: that of Redis or of the store, whichever is higher,
    ///   because most results are in both.
    /// - Throws: `RedisError` or `StorageError` if some results may remain and no worker was notified;
    ///   ``PurgeNotBroadcast``. Repeating the purge completes it.
    public func run(_ purge: Purge) async throws -> Purged {
        if case .tenant(let tenant) = purge.target {
            // First, so that no result is made again after it was removed.
            try await RefreshStore(redis, topics: topics).removeAll(of: tenant)
            try await PresetIndex(redis, topics: topics).removeAll(of: tenant)
        }
        var count = try await Purger(redis).run(purge)
        // Work that begins from now on is not affected. Redis rejects what began before.
        let time = try await now()
        if let store {
            let purger = Purger(redis)
            let stored = try await store.purge(purge, at: time) { keys in
                // Redis may have lost its index of them, and jobs put results back while the purge runs.
                count += try await purger.remove(keys, of: purge.tenant)
            }
            count = max(count, stored)
        }
        let purged = Purged(purge, count: count, cacheTags: CacheTag.all(of: purge, hasStore: store != nil))
        do throws(KafkaError) {
            try await ControlPublisher(producer, topics: topics).publish(.purge(purge, at: time))
            _ = try await producer.send(EventPublisher.record(of: Self.event(purged), topics))
        } catch {
            throw PurgeNotBroadcast(purged: purged, reason: error)
        }
        return purged
    }

    /// The time of Redis in microseconds since 1970, as in fencing tokens.
    private func now() async throws(RedisError) -> Int64 {
        let reply = try await redis.send(["TIME"])
        guard let parts = reply.array?.compactMap({ $0.string.flatMap { Int64($0) } }), parts.count == 2 else {
            throw RedisError(.protocolError, "unexpected reply to TIME: \(reply)")
        }
        return parts[0] * 1_000_000 + parts[1]
    }

    private static func event(_ purged: Purged) -> Event {
        var subject: String?
        if case .source(let source) = purged.target { subject = source }
        return Event(
            id: "purge-\(String(UInt64.random(in: .min ... .max), radix: 16))", time: Timestamp.now.seconds,
            subject: subject, jobID: nil, body: .purged(purged))
    }
}

/// The error of a purge that removed results but could not notify workers and consumers of events.
public struct PurgeNotBroadcast: Error, CustomStringConvertible {
    /// The purge and the number of results removed.
    public let purged: Purged
    /// The error that prevented the notification.
    public let reason: KafkaError

    /// The error, with a remedy.
    public var description: String {
        "results were removed from Redis, but workers and consumers were not notified; purge again: \(reason)"
    }
}
