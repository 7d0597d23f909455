import Concurrency
import Redis
import TestSupport
import Testing

@testable import HalcyonCoordination

/// The table that is explored does what the scripts do on a real Redis, whatever comes in whatever order.
@Suite(.limitedParallelism) struct LeaseTableTests {
    @Test(arguments: [1, 2, 3, 4] as [UInt64]) func theTableDoesWhatRedisDoes(seed: UInt64) async throws {
        let server = try await RedisServer.start()
        let endpoint = try RedisEndpoint("redis://127.0.0.1:\(server.port)")
        let (redis, subscriber) = (RedisClient(endpoint), RedisSubscriber(endpoint))
        var numbers = SeededNumbers(seed: seed)
        let both = BothTables(redis, items: 3, prefix: "s\(seed)")
        let heard = Lock<[[[UInt8]]]>([[], [], []])
        var readers: [Task<Void, Never>] = []
        for process in 0..<3 {
            let messages = try await subscriber.subscribe("halcyon:process:\(both.name(of: process))", keeping: 100_000)
            readers.append(
                Task { for await message in messages { heard.withLock { $0[process].append(message.payload) } } })
        }
        for _ in 0..<400 { try await anything(both, &numbers) }
        let sent = both.messages
        try await until("all messages are there") { heard.withLock { $0.map(\.count).reduce(0, +) } >= sent.count }
        for process in 0..<3 {
            let read = try heard.withLock { $0[process] }.map { try both.read($0, to: process) }
            #expect(read == sent.filter { $0.process == process })
        }
        #expect(sent.count > 20)
        for reader in readers { reader.cancel() }
        await subscriber.close()
        await redis.close()
        await server.stop()
    }

    private func anything(_ both: BothTables, _ numbers: inout SeededNumbers) async throws {
        func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &numbers) }
        let item = number(0..<3)
        let holder = both.table.items[item].holder
        let chance = number(0..<4)
        // Mostly whoever has to do with the item, now and then somebody else.
        let anybody = LeaseTable.Owner(process: number(0..<3), attempt: number(0..<2))
        let owner = chance > 0 ? holder?.owner ?? anybody : anybody
        let known = both.fences[number(0..<both.fences.count)]
        let fence = chance > 0 ? holder.flatMap { held in both.fences.last { $0.model == held.fence } } ?? known : known
        switch number(0..<100) {
        case 0..<45:
            let asker = number(0..<3) == 0 ? owner : anybody
            let items = [item] + (number(0..<3) == 0 ? [(item + 1) % 3] : [])
            let isShort = number(0..<12) == 0
            try await both.enter(
                asker,
                items.map { item in
                    let seen = both.fences[number(0..<both.fences.count)]
                    return (item, number(0..<3) == 0 ? seen : nil, number(0..<5) == 0)
                }, level: number(0..<3), duration: isShort ? 15 : BothTables.long)
        case 45..<55: try await both.renew(item, owner, fence, level: number(0..<3))
        case 55..<67:
            try await both.release(
                item, owner, fence, [.stored, .failed, .givenUp][number(0..<3)],
                deaths: number(0..<4) == 0 ? number(0..<12) : nil)
        case 67..<75:
            let second = (item + 1) % 3
            try await both.abandon(owner, [(item, fence)] + (chance == 1 ? [(second, known)] : []))
        case 75..<79:
            let waiter = both.table.items[item].waiters.first?.owner ?? anybody
            try await both.leave(item, waiter)
        case 79..<86: try await both.store(item, fence)
        case 86..<89: try await both.purge(chance == 0 ? nil : item)
        case 89..<93: try await both.lapse(item)
        case 93..<96: try await both.forget(item, waiter: 0)
        case 96: try await both.setClockBack()
        case 97: try await both.forgetFences()
        default: if chance == 0 { try await both.flush() }
        }
    }
}
