import Concurrency
import Telemetry

/// The limits of a quota; nil for no limit.
public struct Budget: Hashable, Sendable {
    /// The maximum total size in bytes.
    public var bytes: Int?
    /// The maximum total number of pixels of images, including all frames.
    public var pixels: Int?
    /// The maximum number of entries.
    public var count: Int?

    /// Creates a budget with the given limits.
    public init(bytes: Int? = nil, pixels: Int? = nil, count: Int? = nil) {
        self.bytes = bytes
        self.pixels = pixels
        self.count = count
    }

    /// True if there is any limit.
    public var isLimited: Bool { bytes != nil || pixels != nil || count != nil }

    /// True if a single entry is within the limits.
    public func canHold(_ cost: Cost) -> Bool {
        cost.bytes <= bytes ?? .max && cost.pixels <= pixels ?? .max && 1 <= count ?? .max
    }
}

/// The cost of an entry.
public struct Cost: Hashable, Sendable {
    /// The number of bytes that count toward the quota.
    public let bytes: Int
    /// The number of pixels of an image, including all frames.
    public let pixels: Int

    /// Creates a cost from bytes and pixels.
    public init(bytes: Int, pixels: Int = 0) {
        self.bytes = bytes
        self.pixels = pixels
    }
}

/// The usage of a quota, or a part of it that was removed.
public struct QuotaUsage: Hashable, Sendable {
    /// The number of entries.
    public var count: Int
    /// The total size in bytes.
    public var bytes: Int
    /// The total number of pixels of images, including all frames.
    public var pixels: Int

    /// Creates a usage, by default zero.
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

/// The time at which an entry was stored, in its field `storedAt`: milliseconds since 1970 by the Redis clock, with
/// decimals. It increases each time a key is stored, so it identifies the version.
public enum StoreTimestamp {
    /// Lua for the beginning of a script that stores. It defines `now`, and `stamp(old)`, the new `storedAt` of an
    /// entry that had `old`, if any.
    public static let lua = """
        local time = redis.call('TIME')
        local now = time[1] * 1000 + time[2] / 1000
        local function stamp(old)
          if old and tonumber(old) > now - 0.0005 then return string.format('%.3f', old + 0.001) end
          return string.format('%.3f', now)
        end

        """
}

/// Records uses of entries for LRU eviction. It collects them for about a second, so that a cache hit needs no extra
/// command.
public final class AccessRecorder: Sendable {
    private struct State {
        /// The sequence number of the last use of each entry, by quota.
        var last: [String: [String: Int]] = [:]
        var count = 0
        /// The task that writes pending uses; nil if there are none.
        var telling: Task<Void, Never>?
        var isClosed = false
    }

    private let state = Lock(State())
    private let quotas: QuotaStore
    private let errors: ToleratedErrors
    private let delay: Duration
    /// The maximum number of entries in one command, because Redis is blocked meanwhile.
    private static let step = 1000

    /// Creates a recorder.
    /// - Parameter delay: the time for which uses are collected.
    init(_ quotas: QuotaStore, _ errors: ToleratedErrors, delay: Duration = .seconds(1)) {
        self.quotas = quotas
        self.errors = errors
        self.delay = delay
    }

    /// Records uses in the order of the keys.
    public func recordAccess(_ keys: some Sequence<String>, in quota: String) {
        state.withLock { state in
            guard !state.isClosed else { return }
            for key in keys {
                state.count += 1
                state.last[quota, default: [:]][key] = state.count
            }
            if state.telling == nil { state.telling = Task { await self.flushLater() } }
        }
    }

    private func flushLater() async {
        do { try await Task.sleep(for: delay) } catch { return }
        await flush()
    }

    /// Writes pending uses. They are dropped on errors, because the next use is recorded again.
    private func flush() async {
        let last = state.withLock { state in
            let last = state.last
            (state.last, state.telling) = ([:], nil)
            return last
        }
        for (quota, uses) in last {
            let keys = uses.sorted { $0.value < $1.value }.map(\.key)
            for start in stride(from: 0, to: keys.count, by: Self.step) {
                let some = Array(keys[start..<min(start + Self.step, keys.count)])
                await errors.tolerating { try await quotas.use(some, in: quota) }
            }
        }
    }

    /// Writes pending uses, and ignores later ones.
    public func close() async {
        let telling = state.withLock { state in
            state.isClosed = true
            return state.telling
        }
        telling?.cancel()
        await flush()
    }
}
