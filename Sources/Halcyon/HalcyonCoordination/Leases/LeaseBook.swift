import Redis

/// Leases as Redis keeps them: one method for each script.
struct LeaseBook: Sendable {
    let redis: RedisClient
    /// This process, by a name that nobody else has.
    let process: String
    let duration: Duration

    /// Asks for products of one source.
    func enter(
        _ wanted: [(name: LeaseName, seen: Seen)], attempt: String, level: Int
    ) async throws(RedisError) -> [LeaseAnswer] {
        let keys = wanted.flatMap { [$0.name.lease, $0.name.waiters, $0.name.product] }
        let reply = try await redis.run(
            LeaseScripts.enter, keys: [.string(wanted[0].name.fences)] + keys.map { .string($0) },
            arguments: [milliseconds, .string(process), .string(attempt), .integer(level)]
                + wanted.map { .string($0.seen.text) })
        guard let parts = reply.array, parts.count == wanted.count else { throw .unexpected(reply) }
        var answers: [LeaseAnswer] = []
        for (part, want) in zip(parts, wanted) {
            guard let answer = LeaseAnswer(part, want.name, owner: owner(attempt)) else {
                throw .unexpected(reply)
            }
            answers.append(answer)
        }
        return answers
    }

    /// Prolongs leases, all in one go.
    /// - Returns: of each whether it is still held.
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

    /// Ends a lease and wakes who waits.
    /// - Parameter deaths: how many are remembered; nil for what follows from the outcome.
    func release(_ lease: Lease, _ outcome: LeaseOutcome, deaths: Int? = nil) async throws(RedisError) {
        let (keys, arguments) = releasing(lease, outcome, deaths)
        _ = try await redis.run(LeaseScripts.release, keys: keys, arguments: arguments)
    }

    /// Ends leases without anything to show for them, all in one go.
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

    /// Ends all leases of an attempt unless somebody else waits for what is made under one of them.
    /// - Returns: whether somebody waits.
    func areWanted(_ leases: [Lease]) async throws(RedisError) -> Bool {
        try await redis.run(
            LeaseScripts.abandon,
            keys: [.string(leases[0].name.fences)]
                + leases.flatMap { [.string($0.name.lease), .string($0.name.waiters)] },
            arguments: [milliseconds, .string(leases[0].owner)] + leases.map { .integer($0.fence) }
        ).integer == 1
    }

    /// An attempt waits for the product no more.
    func leave(_ name: LeaseName, attempt: String) async throws(RedisError) {
        _ = try await redis.send(["ZREM", .string(name.waiters), .string(owner(attempt))])
    }

    /// An attempt as others see it.
    func owner(_ attempt: String) -> String { "\(process):\(attempt)" }

    private var milliseconds: RedisArgument { .integer(Int(duration / .milliseconds(1))) }
}

extension RedisError {
    fileprivate static func unexpected(_ reply: RedisValue) -> RedisError {
        RedisError(.protocolError, "asking for a lease gave \(reply)")
    }
}

extension Seen {
    fileprivate var text: String {
        switch self {
        case .nothing: "-1"
        case .version(let fence): "\(fence)"
        case .anything: "any"
        }
    }
}

extension LeaseAnswer {
    fileprivate init?(_ reply: RedisValue, _ name: LeaseName, owner: String) {
        guard let parts = reply.array, let kind = parts.first?.string else { return nil }
        switch (kind, parts.count) {
        case ("there", 1): self = .there
        case ("mine", 3):
            guard let fence = parts[1].string.flatMap(Int.init), let deaths = parts[2].integer else { return nil }
            self = .mine(Lease(name: name, owner: owner, fence: fence, deaths: deaths))
        case ("held", 3):
            guard let holder = parts[1].string?.split(separator: ":"), holder.count == 4, let fence = Int(holder[2]),
                let left = parts[2].integer
            else { return nil }
            self = .held(Holder(owner: "\(holder[0]):\(holder[1])", fence: fence, left: .milliseconds(max(0, left))))
        default: return nil
        }
    }
}

/// Lua for scripts that store products and forget them. The fences of a source are a hash that is remembered for a while after the last
/// lease or purge.
public enum Fencing {
    /// Milliseconds for which fences are remembered at least. Only an owner that was away for as long needs them longer.
    public static let memory = 600_000

    /// Defines `micros`, the server's time in microseconds; `digits(number)`; and `note(fences, field, value, …)`, which writes them, to be
    /// remembered for a while from now.
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

    /// Defines `isFencedOut(fences, product, item, fence, since)`: whether something newer than what was made under this fence is
    /// there, its making began before its item was purged, or it was made from something older (`since`) than the last purge of its
    /// source. Without a fence (0) nothing is known to be older, and whatever has one is newer.
    public static let check = """
        local function isFencedOut(fences, product, item, fence, since)
          local made = redis.call('HGET', product, 'fence')
          if made and tonumber(made) > fence then return true end
          local floors = redis.call('HMGET', fences, 'floor', 'floor:' .. item)
          return tonumber(floors[1] or 0) > since or tonumber(floors[2] or 0) > fence
        end

        """

    /// Defines `purge(fences, item)`: what was begun before is stored no more, of one item, or without one of all items of the source.
    /// To be called in the same step in which what is there is removed. The floor never sinks, and is above all fences given, also where
    /// they are ahead of a clock that was set back.
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

/// How many deaths make a product poison (docs/poison.md).
public struct DeathLimits: Hashable, Sendable {
    /// Deaths that it caused, or may have: the first of a worker that made it, and those of children that tried it then; or of workers
    /// in the middle of what the host program's own provider does.
    public var deaths = 3
    /// Deaths of workers that had it under way where it could do no harm: while a child tried it, or while it was loaded over the network. Nothing
    /// but their number speaks against it.
    public var coincidences = 10

    /// The defaults.
    public init() {}
}
