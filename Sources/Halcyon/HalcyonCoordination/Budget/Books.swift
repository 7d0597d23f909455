import Redis
import Telemetry

/// The books that are kept of things in Redis, by all workers together: which there are, what they count for, and which was used
/// last. A thing is a hash with a field `storedAt` (``StoringMoment``); each book has a name, and knows what was entered in it.
///
/// Things and books lie in different slots, so nothing changes both at once. A worker that dies between storing a thing and entering
/// it leaves one that counts for nothing, until it is stored anew or expires; one that was removed before it was entered, or
/// that Redis evicted, counts until it would have expired.
public struct Books: Sendable {
    private let redis: RedisClient

    /// The client stays its maker's, who closes it.
    public init(_ redis: RedisClient) { self.redis = redis }

    /// What taking things out of the books came to.
    struct Clearing {
        /// Whether there is more to take out.
        let hasMore: Bool
        /// What is left in the books.
        let left: BudgetSum
        /// Those that must go, in this order.
        let victims: [Victim]
    }

    /// A thing that is no longer in the book.
    struct Victim {
        let key: String
        /// It goes only if it was stored then: what was stored anew meanwhile stays.
        let storedAt: String
        let cost: Cost
    }

    /// Removes things until those of a book are within these limits, those first that have not been used for longest.
    ///
    /// Only what was stored while a budget was set is known.
    /// - Returns: what was removed and what is left.
    /// - Throws: ``RedisError``; what was removed by then is gone.
    public func trim(
        _ book: String, to budget: Budget
    ) async throws(RedisError) -> (removed: BudgetSum, left: BudgetSum) {
        var removed = BudgetSum()
        while true {
            let clearing = try await self.clearing(BookScripts.trim, book, budget, [])
            for victim in try await remove(clearing.victims) { removed.add(victim.cost) }
            if !clearing.hasMore { return (removed, clearing.left) }
        }
    }

    func enter(
        _ entry: Accounts.Entry, in book: String, _ budget: Budget
    ) async throws(RedisError) -> Clearing {
        try await clearing(
            BookScripts.enter, book, budget,
            [
                .string(entry.key), .string(entry.storedAt), .integer(entry.cost.bytes), .integer(entry.cost.pixels),
                .integer(Int(entry.expiresAt)),
            ])
    }

    func extend(_ key: String, to expiresAt: Double, in book: String) async throws(RedisError) {
        _ = try await run(BookScripts.extend, book, [.string(key), .integer(Int(expiresAt))])
    }

    /// An entry is gone, of that storing: what was stored since under its key stays in the book.
    /// - Throws: ``RedisError``.
    public func strike(_ key: String, _ storedAt: String, in book: String) async throws(RedisError) {
        _ = try await run(BookScripts.strike, book, [.string(key), .string(storedAt)])
    }

    /// - Parameter keys: the one used last at the end.
    func use(_ keys: [String], in book: String) async throws(RedisError) {
        _ = try await run(BookScripts.use, book, keys.map { .string($0) })
    }

    /// Removes things that are no longer in the book, side by side.
    /// - Returns: those that were still there as they were known.
    /// - Throws: the first error; the others have been tried.
    func remove(_ victims: [Victim]) async throws(RedisError) -> [Victim] {
        let results = await withTaskGroup(of: Result<Victim?, RedisError>.self) { group in
            for victim in victims {
                group.addTask { [redis] in
                    do throws(RedisError) {
                        let reply = try await redis.run(
                            BookScripts.removeStored, keys: [.string(victim.key)],
                            arguments: [.string(victim.storedAt)])
                        return .success(reply.integer == 1 ? victim : nil)
                    } catch {
                        return .failure(error)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        var removed: [Victim] = []
        for result in results { if let victim = try result.get() { removed.append(victim) } }
        return removed
    }

    private func clearing(
        _ script: RedisScript, _ book: String, _ budget: Budget, _ words: [RedisArgument]
    ) async throws(RedisError) -> Clearing {
        let limits = [budget.bytes, budget.pixels, budget.count].map { RedisArgument.integer($0 ?? -1) }
        let reply = try await run(script, book, limits + words)
        guard let clearing = Clearing(reply) else {
            throw RedisError(.protocolError, "the books gave what is none of theirs: \(reply)")
        }
        return clearing
    }

    private func run(
        _ script: RedisScript, _ book: String, _ words: [RedisArgument]
    ) async throws(RedisError) -> RedisValue {
        let books = "halcyon:{\(book)}"
        return try await redis.run(
            script, keys: ["\(books):used", "\(books):expiry", "\(books):cost", "\(books):sum"], arguments: words)
    }
}

extension Books.Clearing {
    /// From the reply of ``BookScripts/trim``.
    fileprivate init?(_ reply: RedisValue) {
        guard let words = reply.array, words.count >= 4, words.count.isMultiple(of: 4), let hasMore = words[0].integer,
            let bytes = words[1].integer, let pixels = words[2].integer, let count = words[3].integer
        else { return nil }
        var victims: [Books.Victim] = []
        for place in stride(from: 4, to: words.count, by: 4) {
            guard let key = words[place].string, let storedAt = words[place + 1].string,
                let bytes = words[place + 2].integer, let pixels = words[place + 3].integer
            else { return nil }
            victims.append(
                Books.Victim(key: key, storedAt: storedAt, cost: Cost(bytes: bytes, pixels: pixels)))
        }
        self.init(
            hasMore: hasMore == 1, left: BudgetSum(count: count, bytes: bytes, pixels: pixels), victims: victims)
    }
}

/// Keeps things in Redis within budgets: tells their books what is done to them, and removes what must go.
///
/// All of it is beside the work: when the books cannot be reached, things are stored and found all the same. Each error
/// is counted (``ToleratedErrors``): then the books know less than there is.
public struct Accounts: Sendable {
    /// Of each book for itself.
    public let budget: Budget
    /// Which of them were used.
    public let uses: Uses
    private let books: Books
    private let errors: ToleratedErrors

    /// The client stays its maker's, who closes it.
    public init(_ redis: RedisClient, _ budget: Budget, errors: ToleratedErrors = .silent) {
        self.budget = budget
        self.errors = errors
        books = Books(redis)
        uses = Uses(books, errors)
    }

    /// One thing that was stored.
    public struct Entry: Sendable {
        let key: String
        let storedAt: String
        let expiresAt: Double
        let cost: Cost

        /// - Parameters:
        ///   - storedAt: what its field of that name says.
        ///   - expiresAt: milliseconds since 1970.
        public init(key: String, storedAt: String, expiresAt: Double, cost: Cost) {
            self.key = key
            self.storedAt = storedAt
            self.expiresAt = expiresAt
            self.cost = cost
        }
    }

    /// One was stored: it counts, and others may have to go.
    public func enter(_ entry: Entry, in book: String) async {
        await errors.tolerating {
            let clearing = try await books.enter(entry, in: book, budget)
            _ = try await books.remove(clearing.victims)
            if clearing.hasMore { _ = try await books.trim(book, to: budget) }
        }
    }

    /// One lives longer, until so many milliseconds since 1970.
    public func extend(_ key: String, to expiresAt: Double, in book: String) async {
        await errors.tolerating { try await books.extend(key, to: expiresAt, in: book) }
    }

    /// One that was stored then was removed.
    public func strike(_ key: String, _ storedAt: String, in book: String) async {
        await errors.tolerating { try await books.strike(key, storedAt, in: book) }
    }
}
