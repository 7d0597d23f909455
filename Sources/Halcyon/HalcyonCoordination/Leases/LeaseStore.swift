import Redis

/// The leases in Redis, with one method for each script.
struct LeaseStore: Sendable {
    let redis: RedisClient
    /// The unique name of this process.
    let process: String
    let duration: Duration

    /// Requests products of one source.
    func enter(
        _ wanted: [(name: LeaseName, seen: KnownVersion)], attempt: String, level: Int
    ) async throws(RedisError) -> [AcquireResult] {
        let keys = wanted.flatMap { [$0.name.lease, $0.name.waiters, $0.name.product] }
        let reply = try await redis.run(
            LeaseScripts.enter, keys: [.string(wanted[0].name.fences)] + keys.map { .string($0) },
            arguments: [milliseconds, .string(process), .string(attempt), .integer(level)]
                + wanted.map { .string($0.seen.text) })
        guard let parts = reply.array, parts.count == wanted.count else { throw .unexpected(reply) }
        var answers: [AcquireResult] = []
        for (part, want) in zip(parts, wanted) {
            guard let answer = AcquireResult(part, want.name, owner: owner(attempt)) else {
                throw .unexpected(reply)
            }
            answers.append(answer)
        }
        return answers
    }

    /// Renews leases in one pipeline.
    /// - Returns: for each lease, true if it is still held.
    func renew(_ leases: [(lease: Lease, level: Int)]) async throws(RedisError) -> [Bool] {
        try await redis.run(
            LeaseScripts.renew,
            onEach: leases.map { lease, level in
                (
                    keys: [.string(lease.name.fences), .string(lease.name.lease)],
                    arguments: [
                        milliseconds, .string(lease.owner), .integer(lease.fence), .integer(level),
                        .string(String(lease.name.item)),
                    ]
                )
            }
        ).map { $0.integer != 0 }
    }

    /// Releases a lease and notifies its waiters.
    /// - Parameter deaths: the number of crashes to record; nil to derive it from the outcome.
    func release(_ lease: Lease, _ outcome: LeaseOutcome, deaths: Int? = nil) async throws(RedisError) {
        let (keys, arguments) = releasing(lease, outcome, deaths)
        _ = try await redis.run(LeaseScripts.release, keys: keys, arguments: arguments)
    }

    /// Releases leases without a product, in one pipeline.
    func giveUp(_ leases: [Lease]) async throws(RedisError) {
        _ = try await redis.run(LeaseScripts.release, onEach: leases.map { releasing($0, .givenUp, nil) })
    }

    private func releasing(
        _ lease: Lease, _ outcome: LeaseOutcome, _ deaths: Int?
    ) -> (keys: [RedisArgument], arguments: [RedisArgument]) {
        let left = deaths ?? (outcome == .givenUp ? -1 : 0)
        return (
            keys: [.string(lease.name.fences), .string(lease.name.lease), .string(lease.name.waiters)],
            arguments: [.string(lease.owner), .integer(lease.fence), .string(outcome.text), .integer(left)]
        )
    }

    /// Ends all leases of an attempt unless another attempt waits for one of the products.
    /// - Returns: true if another attempt waits.
    func areWanted(_ leases: [Lease]) async throws(RedisError) -> Bool {
        try await redis.run(
            LeaseScripts.abandon,
            keys: [.string(leases[0].name.fences)]
                + leases.flatMap { [.string($0.name.lease), .string($0.name.waiters)] },
            arguments: [milliseconds, .string(leases[0].owner)] + leases.map { .integer($0.fence) }
        ).integer == 1
    }

    /// Removes an attempt from the waiters for a product.
    func leave(_ name: LeaseName, attempt: String) async throws(RedisError) {
        _ = try await redis.send(["ZREM", .string(name.waiters), .string(owner(attempt))])
    }

    /// The owner name of an attempt.
    func owner(_ attempt: String) -> String { "\(process):\(attempt)" }

    private var milliseconds: RedisArgument { .integer(Int(duration / .milliseconds(1))) }
}

extension RedisError {
    fileprivate static func unexpected(_ reply: RedisValue) -> RedisError {
        RedisError(.protocolError, "unexpected reply from a lease script: \(reply)")
    }
}

extension KnownVersion {
    fileprivate var text: String {
        switch self {
        case .nothing: "-1"
        case .version(let fence): "\(fence)"
        case .anything: "any"
        }
    }
}

extension AcquireResult {
    fileprivate init?(_ reply: RedisValue, _ name: LeaseName, owner: String) {
        guard let parts = reply.array, let kind = parts.first?.string else { return nil }
        switch (kind, parts.count) {
        case ("there", 1): self = .available
        case ("mine", 3):
            guard let fence = parts[1].string.flatMap(Int.init), let deaths = parts[2].integer else { return nil }
            self = .acquired(Lease(name: name, owner: owner, fence: fence, deaths: deaths))
        case ("held", 3):
            guard let holder = parts[1].string?.split(separator: ":"), holder.count == 4, let fence = Int(holder[2]),
                let left = parts[2].integer
            else { return nil }
            self = .heldByOther(
                LeaseOwner(owner: "\(holder[0]):\(holder[1])", fence: fence, left: .milliseconds(max(0, left))))
        default: return nil
        }
    }
}

/// Lua functions for scripts that store and remove products. The fencing tokens of a source are a hash, which expires
/// some time after the last lease or purge.
public enum FencingTokens {
    /// The minimum number of milliseconds for which fencing tokens are retained. Only an owner that hangs for longer
    /// would need them.
    public static let memory = 600_000

    /// Defines `micros`, the server's time in microseconds; `digits(number)`; and `note(fences, field, value, …)`,
    /// which writes fields and extends the TTL of the hash.
    static let time = """
        local time = redis.call('TIME')
        local micros = time[1] * 1000000 + time[2]
        local function digits(number) return string.format('%.0f', number) end
        local function note(fences, ...)
          local left = redis.call('PTTL', fences)
          redis.call('HSET', fences, ...)
          if left ~= -1 and left < \(memory) then redis.call('PEXPIRE', fences, \(memory)) end
        end

        """

    /// Defines `isFencedOut(fences, product, item, fence, since)`. It returns true if a newer product is stored, if the
    /// item was purged after the work started, or if the product was made from an input (`since`) older than the last
    /// purge of the source. Work without a fence (0) is older than any work with one.
    public static let check = """
        local function isFencedOut(fences, product, item, fence, since)
          local made = redis.call('HGET', product, 'fence')
          if made and tonumber(made) > fence then return true end
          local floors = redis.call('HMGET', fences, 'floor', 'floor:' .. item)
          return tonumber(floors[1] or 0) > since or tonumber(floors[2] or 0) > fence
        end

        """

    /// Defines `purge(fences, item)`, which prevents earlier work on an item, or on all items of the source, from being
    /// stored. It must be called in the script that removes the products. The minimum token never decreases, and
    /// exceeds all granted tokens even if they are ahead of a clock that was set back.
    public static let purge =
        "local purge do\n" + time + """
            purge = function(fences, item)
              local field = item and 'floor:' .. item or 'floor'
              local marks = redis.call('HMGET', fences, 'last', field)
              local fence = digits(math.max((tonumber(marks[1]) or 0) + 1, tonumber(marks[2]) or 0, micros))
              note(fences, 'last', fence, field, fence)
            end
            end

            """
}

/// The thresholds for declaring a product poison after crashes (docs/poison.md).
public struct CrashThresholds: Hashable, Sendable {
    /// The number of crashes that the product caused or may have caused: the first crash of a worker that produced it,
    /// and crashes of render processes in quarantine; or crashes of workers inside the host program's own provider.
    public var deaths = 3
    /// The number of crashes of workers during phases in which the product could do no harm: while a render process had
    /// it in quarantine, or while it was fetched over the network. Only their number is evidence.
    public var coincidences = 10

    /// Creates thresholds with default values.
    public init() {}
}
