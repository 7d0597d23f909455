import Formats
import HalcyonCoordination
import HalcyonModel
import HalcyonWire
import Kafka
import Redis

/// Forgets results, and keeps work under way from bringing them back. It needs no worker.
///
/// What is removed and the floor of fences that keeps older work from storing it again change in one step. Of several results
/// each goes by itself: after an error some are gone, and the same purge again does the rest.
public struct Purger: Sendable {
    private let redis: RedisClient
    private let tags: TagIndex
    private let books: Books

    /// The client stays its maker's, who closes it.
    public init(_ redis: RedisClient) {
        self.redis = redis
        tags = TagIndex(redis)
        books = Books(redis)
    }

    /// Results removed in one command at most: Redis does nothing else meanwhile.
    private static let step = 200

    /// Forgets what the purge says.
    /// - Returns: how many results were there.
    /// - Throws: ``RedisError``; what was removed by then is gone.
    public func run(_ purge: Purge) async throws(RedisError) -> Int {
        switch purge.target {
        case .source(let source):
            try await forget(
                sourceOf: SourceKeys(sourceHash: SourceRequest(source, tenant: purge.tenant).sourceHash), purge.tenant)
        case .key(let key): try await forget([key], purge.tenant)
        case .tag(let tag): try await forget(tag: tag, purge.tenant)
        }
    }

    private func forget(sourceOf keys: SourceKeys, _ tenant: String?) async throws(RedisError) -> Int {
        let begun = try await begin(keys, [keys.source], item: nil, listing: true)
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

    private func forget(tag: String, _ tenant: String?) async throws(RedisError) -> Int {
        let all = try await tags.purge(tag, of: tenant)
        var count = 0
        for start in stride(from: 0, to: all.count, by: Self.step) {
            let keys = Array(all[start..<min(start + Self.step, all.count)])
            count += try await forget(keys.compactMap { ResultKey($0) }, tenant)
            try await tags.remove(keys, from: tag, of: tenant)
        }
        return count
    }

    /// Each in a step of its own, side by side.
    private func forget(_ keys: [ResultKey], _ tenant: String?) async throws(RedisError) -> Int {
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
            throw RedisError(.protocolError, "a purge gave what is none of its: \(reply)")
        }
        return (names.compactMap(\.string), Self.removed(parts[1]))
    }

    private static func removed(_ reply: RedisValue) -> [Gone] {
        let words = reply.array?.compactMap(\.string) ?? []
        return stride(from: 0, to: words.count - 1, by: 2).map { (words[$0], words[$0 + 1]) }
    }

    /// Without a budget there are no books, and while they cannot be reached they count what expires by itself.
    private func strike(_ gone: [Gone], _ tenant: String?) async {
        for result in gone {
            // The purge has succeeded: what the books count too much ends with its expiry.
            try? await books.strike(result.key, result.storedAt, in: ResultTier.book(of: tenant))
        }
    }
}

/// How results are forgotten. Each script has the keys of one slot.
enum PurgeScripts {
    /// Removes results and what else is named, and keeps work under way from bringing them back (``Fencing/purge``).
    ///
    /// KEYS: fences, index of results, then what is to go. ARGV: the item that is purged, or nothing for all items of the source, and
    /// whether the index is wanted. Gives the names in the index, and then of each result that was there its key and its `storedAt`.
    ///
    /// UNLINK comes before all other writing: once a script has written, Redis lets it go on past maxmemory.
    static let begin = RedisScript(
        removing + Fencing.purge + """
            local gone = remove()
            purge(KEYS[1], ARGV[1] ~= '' and ARGV[1] or nil)
            return {ARGV[2] == 'list' and redis.call('ZRANGE', KEYS[2], 0, -1) or {}, gone}
            """)

    /// Removes results. KEYS: fences, index of results, results. Gives of each that was there its key and its `storedAt`.
    static let remove = RedisScript(removing + "return remove()")

    private static let removing = """
        local function remove()
          local gone = {}
          for place = 3, #KEYS do
            local key = KEYS[place]
            local name = string.match(key, '}:(.*)$')
            if name ~= 'source' then
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

/// A purge from beginning to end: results go from Redis, workers are told, and so is everybody who follows events.
public struct Purging: Sendable {
    private let redis: RedisClient
    private let producer: Producer
    private let topics: Topics

    /// Redis and the producer stay their makers', who close them.
    public init(_ redis: RedisClient, _ producer: Producer, topics: Topics) {
        self.redis = redis
        self.producer = producer
        self.topics = topics
    }

    /// Forgets what the purge says. It needs no worker.
    /// - Returns: how much was there.
    /// - Throws: `RedisError`: part of it may be gone, and nobody was told; ``PurgeNotTold``. The same purge again does the rest.
    public func run(_ purge: Purge) async throws -> Purged {
        let purged = Purged(purge, count: try await Purger(redis).run(purge))
        do throws(KafkaError) {
            try await ControlPublisher(producer, topics: topics).publish(.purge(purge))
            _ = try await producer.send(EventPublisher.record(of: Self.event(purged), topics))
        } catch {
            throw PurgeNotTold(purged: purged, reason: error)
        }
        return purged
    }

    private static func event(_ purged: Purged) -> Event {
        var subject: String?
        if case .source(let source) = purged.target { subject = source }
        return Event(
            id: "purge-\(String(UInt64.random(in: .min ... .max), radix: 16))", time: Timestamp.now.seconds,
            subject: subject, jobID: nil, body: .purged(purged))
    }
}

/// Results are forgotten, and workers and those who follow events do not know.
public struct PurgeNotTold: Error, CustomStringConvertible {
    /// What was forgotten.
    public let purged: Purged
    /// Why nobody was told.
    public let reason: KafkaError

    /// What would mend it.
    public var description: String {
        "it is forgotten in Redis, but workers and consumers were not told; purge again: \(reason)"
    }
}
