import Redis
import Telemetry

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
