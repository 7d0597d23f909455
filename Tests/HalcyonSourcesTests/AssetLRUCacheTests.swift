import Testing

@testable import HalcyonSources

@Suite struct AssetLRUCacheTests {
    private let now = ContinuousClock.now
    private func source(_ bytes: Int) -> LoadedSource {
        LoadedSource(body: [UInt8](repeating: 1, count: bytes), completedAt: 0)
    }

    @Test func returnsSourcesUntilTheyExpire() {
        var cache = AssetLRUCache(capacity: 100_000)
        cache.store(source(10_000), as: "a", until: now + .seconds(5))
        #expect(cache.source("a", at: now + .milliseconds(4999))?.body.count == 10_000)
        #expect(cache.bytes == 10_000)
        #expect(cache.source("a", at: now + .seconds(5)) == nil)
        #expect(cache.bytes == 0)
    }

    @Test func evictsLeastRecentlyUsedFirst() {
        var cache = AssetLRUCache(capacity: 30_000)
        for name in ["a", "b", "c"] { cache.store(source(10_000), as: name, until: now + .seconds(5)) }
        #expect(cache.source("a", at: now) != nil)
        cache.store(source(15_000), as: "d", until: now + .seconds(5))
        #expect(["a", "b", "c", "d"].map { cache.source($0, at: now) != nil } == [true, false, false, true])
        #expect(cache.bytes == 25_000)
    }

    @Test func oversizedSourceIsNotStoredAndEvictsNothing() {
        var cache = AssetLRUCache(capacity: 30_000)
        cache.store(source(10_000), as: "a", until: now + .seconds(5))
        cache.store(source(30_001), as: "b", until: now + .seconds(5))
        #expect(cache.source("a", at: now) != nil && cache.source("b", at: now) == nil)
        var none = AssetLRUCache(capacity: 0)
        none.store(source(0), as: "a", until: now + .seconds(5))
        #expect(none.source("a", at: now) == nil && none.bytes == 0)
    }

    @Test func storingAgainReplacesTheEntry() {
        var cache = AssetLRUCache(capacity: 100_000)
        cache.store(source(20_000), as: "a", until: now + .seconds(5))
        cache.store(source(1), as: "a", until: now + .seconds(9))
        #expect(cache.source("a", at: now + .seconds(8))?.body.count == 1)
        #expect(cache.bytes == AssetLRUCache.leastCost)
        // The new source is too large to store, and the entry that it replaces is obsolete.
        cache.store(source(100_001), as: "a", until: now + .seconds(9))
        #expect(cache.source("a", at: now) == nil && cache.bytes == 0)
    }
}

extension AssetLRUCache {
    fileprivate mutating func source(_ name: String, at now: ContinuousClock.Instant) -> LoadedSource? {
        source(Array(name.utf8), at: now)
    }

    fileprivate mutating func remove(_ name: String) { remove(Array(name.utf8)) }

    fileprivate mutating func store(_ source: LoadedSource, as name: String, until expiry: ContinuousClock.Instant) {
        store(source, as: Array(name.utf8), until: expiry)
    }
}
