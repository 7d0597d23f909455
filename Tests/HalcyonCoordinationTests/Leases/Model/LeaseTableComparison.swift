import Concurrency
import Redis
import Testing

@testable import HalcyonCoordination

/// A ``LeaseTable`` and the leases in a real Redis. Each operation is performed on both, and the two are compared:
/// fences by their order, times by bounds.
final class LeaseTableComparison {
    private static let store = RedisScript(
        FencingTokens.check + """
            if isFencedOut(KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[2])) then return 0 end
            redis.call('HSET', KEYS[2], 'fence', ARGV[2])
            return 1
            """)
    /// ARGV: the item, or '' for all. KEYS: the fences, then the products.
    private static let purge = RedisScript(
        FencingTokens.purge + """
            purge(KEYS[1], ARGV[1] ~= '' and ARGV[1] or nil)
            for i = 2, #KEYS do redis.call('UNLINK', KEYS[i]) end
            """)
    static let long = 600_000

    var table: LeaseTable
    private(set) var messages: [LeaseTable.Message] = []
    /// The fences that Redis granted, and the corresponding ones of the table.
    private(set) var fences: [(real: Int, model: Int)] = [(0, 0)]
    let redis: RedisClient
    let names: [LeaseName]
    private let prefix: String

    init(_ redis: RedisClient, items: Int, prefix: String) {
        self.redis = redis
        self.prefix = prefix
        table = LeaseTable(items: items)
        names = (0..<items).map { LeaseName(product: "halcyon:{\(prefix)}:item\($0)") }
    }

    func name(of process: Int) -> String { "\(prefix)p\(process)" }

    private func store(_ owner: LeaseTable.Owner, _ duration: Int) -> LeaseStore {
        LeaseStore(redis: redis, process: name(of: owner.process), duration: .milliseconds(duration))
    }

    func text(_ owner: LeaseTable.Owner) -> String { "\(name(of: owner.process)):a\(owner.attempt)" }

    private func lease(_ item: Int, _ owner: LeaseTable.Owner, _ fence: Int) -> Lease {
        Lease(name: names[item], owner: text(owner), fence: fence, deaths: 0)
    }

    /// Sets the table's clock to the server's.
    func synchronize() async throws {
        table.advance(try await time() - table.now)
    }

    private func time() async throws -> Int {
        let parts = try await redis.send(["TIME"]).array ?? []
        return try #require(parts[0].string.flatMap(Int.init)) * 1000
            + #require(parts[1].string.flatMap(Int.init)) / 1000
    }

    private func match(_ real: Int, _ model: Int, _ what: String) {
        for known in fences
        where (known.real < real) != (known.model < model) || (known.real == real) != (known.model == model) {
            Issue.record("\(what): fences \(real) and \(model), but \(known.real) and \(known.model) before")
            return
        }
        if !fences.contains(where: { $0.real == real }) { fences.append((real, model)) }
    }

    // MARK: Scripts

    func enter(
        _ owner: LeaseTable.Owner, _ wanted: [(item: Int, seen: (real: Int, model: Int)?, isReload: Bool)],
        level: Int,
        duration: Int = long
    ) async throws {
        try await synchronize()
        let real = try await store(owner, duration).enter(
            wanted.map { item, seen, isReload in
                (names[item], isReload ? .anything : seen.map { .version($0.real) } ?? .nothing)
            }, attempt: "a\(owner.attempt)", level: level)
        let model = table.enter(
            owner,
            wanted.map { item, seen, isReload in
                (item, isReload ? .anything : seen.map { .version($0.model) } ?? .nothing)
            }, level: level, duration: duration)
        messages += model.messages
        let after = try await time()
        for (real, model) in zip(real, model.answers) {
            switch (real, model) {
            case (.available, .available): break
            case (.acquired(let lease), .acquired(let fence, let deaths)):
                match(lease.fence, fence, "acquired")
                #expect(lease.deaths == deaths)
            case (.heldByOther(let one), .heldByOther(let other)):
                match(one.fence, other.fence, "held")
                #expect(one.owner == text(other.owner))
                #expect(one.left <= .milliseconds(Self.long) && one.left >= .milliseconds(other.until - after - 1))
            default: Issue.record("Redis: \(real), the table: \(model)")
            }
        }
        if duration != Self.long {
            for (item, _, _) in wanted {
                while true {
                    let left: Int = try await redis.send(["PTTL", .string(names[item].lease)]).integer ?? 0
                    if left < 0 || left > duration { break }
                    try await Task.sleep(for: .milliseconds(2))
                }
            }
            try await synchronize()
        }
        try await compare()
    }

    func renew(_ item: Int, _ owner: LeaseTable.Owner, _ fence: (real: Int, model: Int), level: Int) async throws {
        try await synchronize()
        let isKept = try await store(owner, Self.long).renew([(lease(item, owner, fence.real), level)])[0]
        let isKeptHere = table.renew(item, owner, fence: fence.model, level: level, duration: Self.long)
        #expect(isKept == isKeptHere)
        try await compare()
    }

    func release(
        _ item: Int, _ owner: LeaseTable.Owner, _ fence: (real: Int, model: Int), _ outcome: LeaseTable.Outcome,
        deaths: Int?
    ) async throws {
        try await synchronize()
        try await store(owner, Self.long).release(lease(item, owner, fence.real), outcome.real, deaths: deaths)
        messages += table.release(item, owner, fence: fence.model, outcome, deaths: deaths) ?? []
        try await compare()
    }

    func abandon(_ owner: LeaseTable.Owner, _ leases: [(item: Int, fence: (real: Int, model: Int))]) async throws {
        try await synchronize()
        let isWanted = try await store(owner, Self.long).areWanted(leases.map { lease($0.item, owner, $0.fence.real) })
        let isWantedHere = table.abandon(owner, leases.map { ($0.item, $0.fence.model) })
        #expect(isWanted == isWantedHere)
        try await compare()
    }

    func leave(_ item: Int, _ owner: LeaseTable.Owner) async throws {
        try await store(owner, Self.long).leave(names[item], attempt: "a\(owner.attempt)")
        table.leave(item, owner)
        try await compare()
    }

    func store(_ item: Int, _ fence: (real: Int, model: Int)) async throws {
        let isStored =
            try await redis.run(
                Self.store, keys: [.string(names[item].fences), .string(names[item].product)],
                arguments: [.string(String(names[item].item)), .integer(fence.real)]
            ).integer == 1
        let isStoredHere = table.store(item, fence: fence.model)
        #expect(isStored == isStoredHere)
        try await compare()
    }

    func purge(_ item: Int?) async throws {
        try await synchronize()
        let gone = item.map { [names[$0]] } ?? names
        _ = try await redis.run(
            Self.purge, keys: [.string(names[0].fences)] + gone.map { .string($0.product) },
            arguments: [.string(item.map { String(names[$0].item) } ?? "")])
        table.purge(item)
        try await compare()
    }

    // MARK: Comparison

    func compare() async throws {
        let replies = try await redis.pipeline(
            names.flatMap { name -> [[RedisArgument]] in
                [
                    ["GET", .string(name.lease)], ["ZRANGE", .string(name.waiters), "0", "-1"],
                    ["HGET", .string(name.product), "fence"],
                    ["HGET", .string(name.fences), .string("deaths:\(name.item)")],
                ]
            })
        for (number, item) in table.items.enumerated() {
            let (holder, waiters, product) = (replies[4 * number], replies[4 * number + 1], replies[4 * number + 2])
            let attempt = replies[4 * number + 3].string?.split(separator: " ") ?? []
            #expect(attempt.isEmpty == (item.attempt == nil))
            if let known = item.attempt, attempt.count == 3 {
                #expect(Int(attempt[0]) == known.deaths && attempt[2] == (known.isOpen ? "open" : "ended"))
                match(try #require(Int(attempt[1])), known.fence, "attempt")
            }
            let parts = holder.string?.split(separator: ":") ?? []
            #expect(parts.isEmpty == (item.holder == nil))
            if let known = item.holder, parts.count == 4 {
                #expect("\(parts[0]):\(parts[1])" == text(known.owner) && Int(parts[3]) == known.level)
                match(try #require(Int(parts[2])), known.fence, "holder")
            }
            #expect(Set((waiters.array ?? []).compactMap(\.string)) == Set(item.waiters.map { text($0.owner) }))
            #expect((product.string == nil) == (item.product == nil))
            if let real = product.string.flatMap(Int.init), let model = item.product { match(real, model, "product") }
        }
    }

    /// Returns the message of the table that corresponds to a payload.
    func read(_ payload: [UInt8], to process: Int) throws -> LeaseTable.Message {
        func item(_ lease: String) throws -> Int { try #require(names.firstIndex { $0.lease == lease }) }
        switch try #require(LeaseMessage(payload)) {
        case .escalate(let lease, let level):
            return LeaseTable.Message(process: process, item: try item(lease), text: .escalate(level: level))
        case .ended(let lease, let fence, let outcome):
            let model = try #require(fences.first { $0.real == fence }).model
            let known = try #require([.stored, .failed, .givenUp].first { ($0 as LeaseTable.Outcome).real == outcome })
            return LeaseTable.Message(process: process, item: try item(lease), text: .ended(fence: model, known))
        }
    }
}

extension LeaseTable.Outcome {
    var real: LeaseOutcome {
        switch self {
        case .stored: .stored
        case .failed: .failed("not_found: gone")
        case .givenUp: .givenUp
        }
    }
}
