import Telemetry
import Threads

/// What a number of things may take together; nil for as much as they like.
public struct Budget: Hashable, Sendable {
    /// Bytes of all of them.
    public var bytes: Int?
    /// Pixels, where they are images, all frames counted.
    public var pixels: Int?
    /// How many they may be.
    public var count: Int?

    /// No limits, or these.
    public init(bytes: Int? = nil, pixels: Int? = nil, count: Int? = nil) {
        self.bytes = bytes
        self.pixels = pixels
        self.count = count
    }

    /// Whether there is any limit.
    public var isLimited: Bool { bytes != nil || pixels != nil || count != nil }

    /// Whether one thing alone is within the limits.
    public func canHold(_ cost: Cost) -> Bool {
        cost.bytes <= bytes ?? .max && cost.pixels <= pixels ?? .max && 1 <= count ?? .max
    }
}

/// What one thing counts for.
public struct Cost: Hashable, Sendable {
    /// Bytes, as far as whoever keeps it counts them.
    public let bytes: Int
    /// Pixels of an image, all frames counted.
    public let pixels: Int

    /// So much.
    public init(bytes: Int, pixels: Int = 0) {
        self.bytes = bytes
        self.pixels = pixels
    }
}

/// How many things there are, or were removed, and what they count for together.
public struct BudgetSum: Hashable, Sendable {
    /// How many.
    public var count: Int
    /// Bytes of all of them.
    public var bytes: Int
    /// Pixels of those that are images, all frames counted.
    public var pixels: Int

    /// Nothing, or so much.
    public init(count: Int = 0, bytes: Int = 0, pixels: Int = 0) {
        self.count = count
        self.bytes = bytes
        self.pixels = pixels
    }

    mutating func add(_ cost: Cost) {
        count += 1
        bytes += cost.bytes
        pixels += cost.pixels
    }
}

/// When something was stored, as its field `storedAt` says: milliseconds since 1970 by Redis' clock, with decimals. It grows with each
/// storing of a key, so it tells one storing from the next.
public enum StoringMoment {
    /// Lua for the beginning of a script that stores: `now`, and `stamp(old)`, the new `storedAt` of what had `old`, if it had any.
    public static let lua = """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + time[2] / 1000
        local function stamp(old)
          if old and tonumber(old) > now - 0.0005 then return string.format('%.3f', old + 0.001) end
          return string.format('%.3f', now)
        end

        """
}

/// Uses of things on their way into the books: collected for about a second, so that a hit costs no command.
public final class Uses: Sendable {
    private struct State {
        /// By book, of each thing the number of its last use.
        var last: [String: [String: Int]] = [:]
        var count = 0
        /// Tells the books when it is time; nil while there is nothing to tell.
        var telling: Task<Void, Never>?
        var isClosed = false
    }

    private let state = Lock(State())
    private let books: Books
    private let errors: ToleratedErrors
    private let delay: Duration
    /// Things in one command at most: Redis does nothing else meanwhile.
    private static let step = 1000

    /// - Parameter delay: for how long uses are collected.
    init(_ books: Books, _ errors: ToleratedErrors, delay: Duration = .seconds(1)) {
        self.books = books
        self.errors = errors
        self.delay = delay
    }

    /// Notes uses, in their order.
    public func note(_ keys: some Sequence<String>, in book: String) {
        state.withLock { state in
            guard !state.isClosed else { return }
            for key in keys {
                state.count += 1
                state.last[book, default: [:]][key] = state.count
            }
            if state.telling == nil { state.telling = Task { await self.tellLater() } }
        }
    }

    private func tellLater() async {
        do { try await Task.sleep(for: delay) } catch { return }
        await tell()
    }

    /// What is not taken is forgotten: the next use is told again.
    private func tell() async {
        let last = state.withLock { state in
            let last = state.last
            (state.last, state.telling) = ([:], nil)
            return last
        }
        for (book, uses) in last {
            let keys = uses.sorted { $0.value < $1.value }.map(\.key)
            for start in stride(from: 0, to: keys.count, by: Self.step) {
                let some = Array(keys[start..<min(start + Self.step, keys.count)])
                await errors.tolerating { try await books.use(some, in: book) }
            }
        }
    }

    /// Tells what is known, and takes no more.
    public func close() async {
        let telling = state.withLock { state in
            state.isClosed = true
            return state.telling
        }
        telling?.cancel()
        await tell()
    }
}
