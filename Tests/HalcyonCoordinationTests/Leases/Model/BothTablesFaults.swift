import Redis

@testable import HalcyonCoordination

/// What happens to leases without an attempt's doing.
extension BothTables {
    func lapse(_ item: Int) async throws {
        _ = try await redis.send(["DEL", .string(names[item].lease)])
        table.lapse(item)
        try await compare()
    }

    /// A waiter that has not asked for a while.
    func forget(_ item: Int, waiter place: Int) async throws {
        guard table.items[item].waiters.indices.contains(place) else { return }
        table.items[item].waiters[place].asked -= 2 * LeaseTable.attention
        let waiter = table.items[item].waiters[place]
        _ = try await redis.send([
            "ZADD", .string(names[item].waiters), "XX", .integer(waiter.asked), .string(text(waiter.owner)),
        ])
        try await compare()
    }

    /// The fences are ahead of the clock by an hour, as when that was set back.
    func setClockBack() async throws {
        try await synchronize()
        table.last = max(table.last, (table.now + 3_600_000) * 1000)
        _ = try await redis.send(["HSET", .string(names[0].fences), "last", .integer(table.last)])
    }

    func forgetFences() async throws {
        try await outlive()
        _ = try await redis.send(["DEL", .string(names[0].fences)])
        table.forgetFences()
        try await compare()
    }

    func flush() async throws {
        try await outlive()
        _ = try await redis.send(["FLUSHALL"])
        table.flush()
        try await compare()
    }

    /// The table's clock knows milliseconds alone: what comes next must not be in the same one.
    private func outlive() async throws {
        try await Task.sleep(for: .milliseconds(2))
    }
}
