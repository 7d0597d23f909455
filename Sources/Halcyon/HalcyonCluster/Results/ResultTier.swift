import Digests
import HalcyonCoordination
import HalcyonModel
import HalcyonWire
import JSON
import Redis
import Telemetry

/// Results in Redis, each for as long as its freshness says, and all of a tenant's within a budget.
///
/// A result is a hash: `body` (the file), `facts` (JSON, ``ResultFacts``), `expiresAt` and `storedAt` (milliseconds since 1970), `rule`
/// (``ResultRule/name`` of who gave it its expiry), `fence` (of the lease it was made under) and perhaps `trace` (the `traceparent` of what it was made for).
/// Expiry is absolute and by Redis' own clock, so that workers whose clocks differ agree on it.
public struct ResultTier: Sendable {
    let redis: RedisClient
    private let accounts: Accounts?

    /// The client stays its maker's, who closes it.
    /// - Parameters:
    ///   - budget: what a tenant's results may take. Without limits no books are kept, and nothing is spent on it.
    ///   - errors: those of keeping the books.
    public init(_ redis: RedisClient, budget: Budget = Budget(), errors: ToleratedErrors = .silent) {
        self.redis = redis
        accounts = budget.isLimited ? Accounts(redis, budget, errors: errors) : nil
    }

    /// Looks a result up without reading its bytes; nil when it is not there, or when another version wrote what this one cannot
    /// read. That is no use of it: see ``used(_:of:)``.
    /// - Parameter rule: by which ``extend(_:as:by:of:)`` is asked afterwards, if it is.
    /// - Throws: ``RedisError``.
    public func find(_ key: String, for rule: ResultRule = .response) async throws(RedisError) -> Found? {
        Found(try await redis.send(Self.look(for: key, rule)))
    }

    /// Looks several up at once, in their order.
    /// - Throws: ``RedisError``.
    public func find(_ keys: [String], for rule: ResultRule = .response) async throws(RedisError) -> [Found?] {
        try await redis.pipeline(keys.map { Self.look(for: $0, rule) }).map { Found($0) }
    }

    /// Most rules have no use for `storedAt`, and a hit is the cheaper without it.
    private static func look(for key: String, _ rule: ResultRule) -> [RedisArgument] {
        let fields: [RedisArgument] = ["HMGET", .string(key), "facts", "expiresAt"]
        return rule.canExtend ? fields + ["storedAt"] : fields
    }

    /// The bytes of several results, and what is known of them, in their order.
    /// - Throws: ``RedisError``.
    public func read(_ keys: [String]) async throws(RedisError) -> [(body: [UInt8], result: Found)?] {
        let commands: [[RedisArgument]] = keys.map { ["HMGET", .string($0), "facts", "expiresAt", "body"] }
        return try await redis.pipeline(commands).map { reply in
            guard let fields = reply.array, let body = fields.last?.bytes,
                let result = Found(.array(Array(fields.dropLast())))
            else { return nil }
            return (body, result)
        }
    }

    /// The bytes of a result and what is known of it; nil when it is not there. A hand-off is gone then, and of several readers one
    /// has it.
    /// - Throws: ``RedisError``.
    public func read(_ key: String) async throws(RedisError) -> (body: [UInt8], facts: ResultFacts)? {
        let reply =
            try await key.contains(Self.handOffMark)
            ? redis.run(ResultScripts.take, keys: ResultScripts.keys(of: key))
            : redis.send(["HMGET", .string(key), "body", "facts"])
        // Facts that another version wrote may be unreadable.
        guard let fields = reply.array, fields.count == 2, let body = fields[0].bytes,
            let json = fields[1].bytes, let facts = try? ResultFacts(json: json)
        else { return nil }
        return (body, facts)
    }

    /// Where the making of these results stands in traces; nothing for one that is not there, or of whose making nothing was recorded.
    /// - Throws: ``RedisError``.
    public func makers(of keys: [String]) async throws(RedisError) -> [TraceContext] {
        try await redis.pipeline(keys.map { ["HGET", .string($0), "trace"] })
            .compactMap { $0.string.flatMap { TraceContext(traceparent: $0) } }
    }

    /// Whether a result would fit into its tenant's budget if it were alone there.
    public func canHold(_ facts: ResultFacts) -> Bool { accounts?.budget.canHold(Cost(facts)) ?? true }

    /// Stores a result in place of what was there. Where another rule has given that a later expiry, this stays.
    ///
    /// When the budget is used up, what has not been used for longest goes. Books that cannot be kept stop nothing.
    /// - Parameters:
    ///   - lifetime: seconds from now, above 0.
    ///   - rule: the job's, which gave the lifetime.
    ///   - tenant: the job's.
    ///   - fence: of the lease it was made under; 0 for none.
    ///   - since: fence of the oldest that it was made from; nil for that of the lease.
    ///   - maker: the place in a trace of what it was made for, where that is recorded.
    /// - Returns: when it will go, in seconds since 1970; nil when nothing was stored, because something newer is there or the key has
    ///   been purged since.
    /// - Throws: ``RedisError``; code `server("OOM")` when Redis' memory is full.
    public func store(
        _ body: [UInt8], _ facts: ResultFacts, as key: String, for lifetime: Double, by rule: ResultRule,
        of tenant: String? = nil, fence: Int = 0, since: Int? = nil, maker: TraceContext? = nil
    ) async throws(RedisError) -> Double? {
        guard
            let (expiresAt, storedAt) = try await put(
                body, facts, as: key, for: lifetime, rule, fence, since ?? fence, maker)
        else { return nil }
        await accounts?.enter(
            Accounts.Entry(key: key, storedAt: storedAt, expiresAt: expiresAt, cost: Cost(facts)),
            in: Self.book(of: tenant))
        return expiresAt / 1000
    }

    /// Stores what is read once, under a key of ``handOffKey(for:)``. It counts towards no budget.
    /// - Parameter lifetime: seconds from now, above 0.
    /// - Throws: ``RedisError``.
    public func handOff(
        _ body: [UInt8], _ facts: ResultFacts, as key: String, for lifetime: Double
    ) async throws(RedisError) -> Double {
        guard let stored = try await put(body, facts, as: key, for: lifetime, .never, -1, -1, nil) else {
            throw RedisError(.protocolError, "storing under a key that nobody else has gave nothing")
        }
        return stored.expiresAt / 1000
    }

    private func put(
        _ body: [UInt8], _ facts: ResultFacts, as key: String, for lifetime: Double, _ rule: ResultRule, _ fence: Int,
        _ since: Int, _ maker: TraceContext?
    ) async throws(RedisError) -> (expiresAt: Double, storedAt: String)? {
        var json = JSONWriter(capacity: 256)
        json.value(facts)
        let name = LeaseName(product: key)
        let reply = try await redis.run(
            ResultScripts.store, keys: ResultScripts.keys(of: key) + [.string(name.fences)],
            arguments: [
                .integer(Self.milliseconds(lifetime)), .bytes(body), .bytes(json.bytes), .string(rule.name),
                .integer(fence), .string(String(name.item)), .integer(since), .string(maker?.traceparent ?? ""),
            ])
        if reply.isNull { return nil }
        guard let moments = reply.array, moments.count == 2, let expiresAt = moments[0].string.flatMap(Double.init),
            let storedAt = moments[1].string
        else { throw RedisError(.protocolError, "storing a result gave no time: \(reply)") }
        return (expiresAt, storedAt)
    }

    /// A job's own rule for a result that is there: where it reaches further than the expiry, the result lives so much longer,
    /// counted from when it was stored and never from now.
    /// - Returns: the result with its expiry; nil when it has gone meanwhile.
    /// - Throws: ``RedisError``.
    public func extend(
        _ found: Found, as key: String, by rule: ResultRule, of tenant: String? = nil
    ) async throws(RedisError) -> Found? {
        guard case .own(let seconds) = rule, let storedAt = found.storedAt,
            storedAt.rounded(.down) + Double(Self.milliseconds(seconds)) > found.expiresAtMilliseconds
        else { return found }
        let reply = try await redis.run(
            ResultScripts.extend, keys: ResultScripts.keys(of: key),
            arguments: [.integer(Self.milliseconds(seconds)), .string(rule.name)])
        guard let expiresAt = reply.string.flatMap(Double.init) else { return nil }
        await accounts?.extend(key, to: expiresAt, in: Self.book(of: tenant))
        return Found(facts: found.facts, expiresAtMilliseconds: expiresAt, storedAt: found.storedAt)
    }

    /// Removes a result that has its expiry from this rule, because the rule stores it no more. Another rule's stays.
    /// - Returns: whether one was there.
    /// - Throws: ``RedisError``.
    @discardableResult
    public func remove(
        _ key: String, by rule: ResultRule, of tenant: String? = nil
    ) async throws(RedisError) -> Bool {
        let reply = try await redis.run(
            ResultScripts.removeOfRule, keys: ResultScripts.keys(of: key), arguments: [.string(rule.name)])
        guard let storedAt = reply.string else { return false }
        await accounts?.strike(key, storedAt, in: Self.book(of: tenant))
        return true
    }

    /// Jobs have used these results: they are the last to go when the budget is used up. It is told to Redis about a second later;
    /// without a budget to nobody.
    public func used(_ keys: some Sequence<String>, of tenant: String?) {
        accounts?.uses.note(keys, in: Self.book(of: tenant))
    }

    /// Removes results of a tenant until those that are left are within these limits, those first that have not been used for longest.
    ///
    /// Only results that were stored while a budget was set are known.
    /// - Returns: what was removed and what is left.
    /// - Throws: ``RedisError``; what was removed by then is gone.
    public func trim(
        _ tenant: String?, to budget: Budget
    ) async throws(RedisError) -> (removed: BudgetSum, left: BudgetSum) {
        try await Books(redis).trim(Self.book(of: tenant), to: budget)
    }

    /// Each tenant has one; those of no tenant have one together.
    static func book(of tenant: String?) -> String { "budget:\(tenant ?? "")" }

    /// Tells Redis what is known of uses. Called at the end, before the client is closed.
    public func close() async { await accounts?.uses.close() }

    /// A key for a result that only who is told the key may read, and only once.
    public static func handOffKey(for key: ResultKey) -> String {
        "halcyon:{\(key.sourceHash)}\(handOffMark)\(String.randomHexadecimal())"
    }

    private static let handOffMark = ":handoff:"

    /// At most a hundred years: above that Redis' own arithmetic is near its end.
    private static func milliseconds(_ lifetime: Double) -> Int {
        Int((min(lifetime, 3_155_760_000) * 1000).rounded(.up))
    }
}

extension Cost {
    /// A result's: the bytes of its file, without its facts and its name.
    init(_ facts: ResultFacts) {
        self.init(bytes: facts.bytes, pixels: facts.width * facts.height * (facts.frames ?? 1))
    }
}

extension ResultTier {
    /// A result as whoever passes it on needs it.
    public struct Stored: Sendable {
        /// What is known of it.
        public let facts: ResultFacts
        /// How long it will still be there, by Redis' own clock, so that the reader's does not matter.
        public var remainingMilliseconds: Int64
        /// The file; nil where nobody asked for it.
        public let body: [UInt8]?
    }

    /// Looks at a result, in one round trip; nil when it is not there, or when another version wrote what this one cannot read. That is no use
    /// of it, and a hand-off stays where it is.
    /// - Throws: ``RedisError``, also when the server has it and cannot tell.
    public func stored(_ key: String, withBody: Bool) async throws(RedisError) -> Stored? {
        let fields: [RedisArgument] = ["HMGET", .string(key), "facts"]
        let replies = try await redis.pipeline([withBody ? fields + ["body"] : fields, ["PTTL", .string(key)]])
        for case .error(let error) in replies { throw error }
        // Facts that another version wrote may be unreadable.
        guard replies.count == 2, let values = replies[0].array, values.count == (withBody ? 2 : 1),
            let json = values[0].bytes, let facts = try? ResultFacts(json: json), let remaining = replies[1].integer
        else { return nil }
        let body = withBody ? values[1].bytes : nil
        if withBody && body == nil { return nil }
        return Stored(facts: facts, remainingMilliseconds: Int64(max(0, remaining)), body: body)
    }

    /// Whether a text is of the kind that ``handOffKey(for:)`` makes.
    public static func isHandOffKey(_ text: String) -> Bool {
        // A result key with the mark in place of the colon between its parts.
        let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 4, parts[2].elementsEqual("handoff".utf8) else { return false }
        return ResultKey("\(Substring(parts[0])):\(Substring(parts[1])):\(Substring(parts[3]))") != nil
    }
}

extension ResultTier {
    /// A result that is there.
    public struct Found: Hashable, Sendable {
        /// What is known of it.
        public let facts: ResultFacts
        /// Milliseconds since 1970, as Redis has them.
        let expiresAtMilliseconds: Double
        /// When it was stored, likewise; nil where nobody asked, and where an older version stored it.
        let storedAt: Double?

        /// When it goes, in seconds since 1970.
        public var expiresAt: Double { expiresAtMilliseconds / 1000 }

        init(facts: ResultFacts, expiresAtMilliseconds: Double, storedAt: Double?) {
            self.facts = facts
            self.expiresAtMilliseconds = expiresAtMilliseconds
            self.storedAt = storedAt
        }

        /// From a reply of the fields `facts` and `expiresAt`, and perhaps `storedAt`.
        init?(_ reply: RedisValue) {
            // Facts that another version wrote may be unreadable.
            guard let fields = reply.array, fields.count >= 2, let json = fields[0].bytes,
                let expiresAt = fields[1].string.flatMap(Double.init), let facts = try? ResultFacts(json: json)
            else { return nil }
            self.init(
                facts: facts, expiresAtMilliseconds: expiresAt,
                storedAt: fields.count > 2 ? fields[2].string.flatMap(Double.init) : nil)
        }
    }
}

/// What the parts are called that Redis keeps of one source of one tenant, all in one slot.
struct SourceKeys: Hashable, Sendable {
    /// `halcyon:{…}:`
    private let stem: String

    /// - Parameter sourceHash: what stands between the braces.
    init(sourceHash: String) { stem = "halcyon:{\(sourceHash)}:" }

    /// Of the source that a result was made from.
    /// - Parameter key: the result's, `halcyon:{…}:…`, or that of a hand-off.
    init(of key: String) {
        let end = key.utf8.firstIndex(of: UInt8(ascii: "}")) ?? key.endIndex
        stem = "\(key[..<end])}:"
    }

    /// Its results' names by their expiry.
    var results: String { stem + "results" }
    /// The source as the source tier keeps it.
    var source: String { stem + "source" }
    /// What may be stored: the fences of work under way, and below which of them nothing is stored any more.
    var fences: String { LeaseName(product: source).fences }
    /// The key of the result of this name.
    func result(_ name: String) -> String { stem + name }
}
