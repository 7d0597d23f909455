import Concurrency
import Redis
import TestSupport
import Testing

@testable import HalcyonCoordination

/// Compares the explored table with the scripts on a real Redis, over random operations.
@Suite(.limitedParallelism) struct LeaseTableTests {
    @Test(arguments: [1, 2, 3, 4] as [UInt64]) func matchesTheScriptsOnRedis(seed: UInt64) async throws {
        let server = try await RedisServer.start()
        let endpoint = try RedisEndpoint(server.url)
        let redis = RedisClient(endpoint, settings: .patient())
        let subscriber = RedisSubscriber(endpoint, settings: .patient())
        var numbers = SeededNumbers(seed: seed)
        let tables = LeaseTableComparison(redis, items: 3, prefix: "s\(seed)")
        let received = Lock<[[[UInt8]]]>([[], [], []])
        var readers: [Task<Void, Never>] = []
        for process in 0..<3 {
            let messages = try await subscriber.subscribe(
                "halcyon:process:\(tables.name(of: process))", keeping: 100_000)
            readers.append(
                Task { for await message in messages { received.withLock { $0[process].append(message.payload) } } })
        }
        for _ in 0..<400 { try await performRandomOperation(tables, &numbers) }
        let sent = tables.messages
        try await until("all messages have arrived") {
            received.withLock { $0.map(\.count).reduce(0, +) } >= sent.count
        }
        for process in 0..<3 {
            let read = try received.withLock { $0[process] }.map { try tables.read($0, to: process) }
            #expect(read == sent.filter { $0.process == process })
        }
        #expect(sent.count > 20)
        for reader in readers { reader.cancel() }
        await subscriber.close()
        await redis.close()
        await server.stop()
    }

    private func performRandomOperation(_ tables: LeaseTableComparison, _ numbers: inout SeededNumbers) async throws {
        func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &numbers) }
        let item = number(0..<3)
        let holder = tables.table.items[item].holder
        let chance = number(0..<4)
        // Mostly the owner of the lease, and sometimes another attempt.
        let randomOwner = LeaseTable.Owner(process: number(0..<3), attempt: number(0..<2))
        let owner = chance > 0 ? holder?.owner ?? randomOwner : randomOwner
        let known = tables.fences[number(0..<tables.fences.count)]
        let fence =
            chance > 0 ? holder.flatMap { held in tables.fences.last { $0.model == held.fence } } ?? known : known
        switch number(0..<100) {
        case 0..<45:
            let requester = number(0..<3) == 0 ? owner : randomOwner
            let items = [item] + (number(0..<3) == 0 ? [(item + 1) % 3] : [])
            let isShort = number(0..<12) == 0
            try await tables.enter(
                requester,
                items.map { item in
                    let seen = tables.fences[number(0..<tables.fences.count)]
                    return (item, number(0..<3) == 0 ? seen : nil, number(0..<5) == 0)
                }, level: number(0..<3), duration: isShort ? 15 : LeaseTableComparison.long)
        case 45..<55: try await tables.renew(item, owner, fence, level: number(0..<3))
        case 55..<67:
            try await tables.release(
                item, owner, fence, [.stored, .failed, .givenUp][number(0..<3)],
                deaths: number(0..<4) == 0 ? number(0..<12) : nil)
        case 67..<75:
            let second = (item + 1) % 3
            try await tables.abandon(owner, [(item, fence)] + (chance == 1 ? [(second, known)] : []))
        case 75..<79:
            let waiter = tables.table.items[item].waiters.first?.owner ?? randomOwner
            try await tables.leave(item, waiter)
        case 79..<86: try await tables.store(item, fence)
        case 86..<89: try await tables.purge(chance == 0 ? nil : item)
        case 89..<93: try await tables.expire(item)
        case 93..<96: try await tables.expireWaiter(item, at: 0)
        case 96: try await tables.setClockBack()
        case 97: try await tables.forgetFences()
        default: if chance == 0 { try await tables.flush() }
        }
    }
}
