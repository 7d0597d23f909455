import Redis

/// Keeps results within a budget: tells the books what is done to them, and removes what must go.
///
/// All of it is beside the jobs: when the books cannot be reached, results are stored and found all the same.
struct ResultAccounts: Sendable {
    let budget: ResultBudget
    let uses: ResultUses
    private let books: ResultBooks

    init(_ redis: RedisClient, _ budget: ResultBudget) {
        self.budget = budget
        books = ResultBooks(redis)
        uses = ResultUses(books)
    }

    /// A result that was stored.
    struct Entry {
        let key: String
        let storedAt: String
        /// Milliseconds since 1970.
        let expiresAt: Double
        let cost: ResultCost
    }

    /// A result was stored: it counts, and others may have to go.
    func enter(_ entry: Entry, _ tenant: String?) async {
        do throws(RedisError) {
            var clearing = try await books.enter(entry, tenant, budget)
            _ = try await books.remove(clearing.victims)
            while clearing.hasMore {
                clearing = try await books.clear(tenant, to: budget)
                _ = try await books.remove(clearing.victims)
            }
        } catch {}
    }

    /// A result lives longer, until so many milliseconds since 1970.
    func extend(_ key: String, to expiresAt: Double, _ tenant: String?) async {
        try? await books.extend(key, to: expiresAt, tenant)
    }

    /// A result that was stored then was removed.
    func strike(_ key: String, _ storedAt: String, _ tenant: String?) async {
        try? await books.strike(key, storedAt, tenant)
    }
}
