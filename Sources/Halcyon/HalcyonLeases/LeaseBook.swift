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
