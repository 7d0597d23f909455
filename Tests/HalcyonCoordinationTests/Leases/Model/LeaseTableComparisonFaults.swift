import Redis

@testable import HalcyonCoordination

/// Faults and expiry of leases, in both tables.
extension LeaseTableComparison {
    func expire(_ item: Int) async throws {
        _ = try await redis.send(["DEL", .string(names[item].lease)])
        table.expire(item)
        try await compare()
    }

    /// Lets a waiter expire that has not asked again.
    func expireWaiter(_ item: Int, at index: Int) async throws {
        guard table.items[item].waiters.indices.contains(index) else { return }
        table.items[item].waiters[index].lastRequest -= 2 * LeaseTable.waiterTimeout
        let waiter = table.items[item].waiters[index]
        _ = try await redis.send([
            "ZADD", .string(names[item].waiters), "XX", .integer(waiter.lastRequest), .string(text(waiter.owner)),
        ])
        try await compare()
    }

    /// Sets the fences ahead of the clock by an hour, as after the clock was set back.
    func setClockBack() async throws {
        try await synchronize()
        table.last = max(table.last, (table.now + 3_600_000) * 1000)
        _ = try await redis.send(["HSET", .string(names[0].fences), "last", .integer(table.last)])
    }

    func forgetFences() async throws {
        try await waitForNextMillisecond()
        _ = try await redis.send(["DEL", .string(names[0].fences)])
        table.forgetFences()
        try await compare()
    }

    func flush() async throws {
        try await waitForNextMillisecond()
        _ = try await redis.send(["FLUSHALL"])
        table.flush()
        try await compare()
    }

    /// Waits until the next millisecond, because the table's clock has no finer resolution.
    private func waitForNextMillisecond() async throws {
        try await Task.sleep(for: .milliseconds(2))
    }
}
