import Testing

@testable import HalcyonSources

@Suite struct AssetLRUCacheTests {
    private let now = ContinuousClock.now
    private func source(_ bytes: Int) -> LoadedSource {
        LoadedSource(body: [UInt8](repeating: 1, count: bytes), completedAt: 0)
    }

    @Test func aSourceIsThereUntilItIsNoLongerFresh() {
        var kept = AssetLRUCache(capacity: 100_000)
        kept.store(source(10_000), as: "a", until: now + .seconds(5))
        #expect(kept.source("a", at: now + .milliseconds(4999))?.body.count == 10_000)
        #expect(kept.bytes == 10_000)
        #expect(kept.source("a", at: now + .seconds(5)) == nil)
        #expect(kept.bytes == 0)
    }

    @Test func whatWasNotUsedForLongestGoesFirst() {
        var kept = AssetLRUCache(capacity: 30_000)
        for name in ["a", "b", "c"] { kept.store(source(10_000), as: name, until: now + .seconds(5)) }
        #expect(kept.source("a", at: now) != nil)
        kept.store(source(15_000), as: "d", until: now + .seconds(5))
        #expect(["a", "b", "c", "d"].map { kept.source($0, at: now) != nil } == [true, false, false, true])
        #expect(kept.bytes == 25_000)
    }

    @Test func whatIsTooLargeIsNotKeptAndTakesNothingAway() {
        var kept = AssetLRUCache(capacity: 30_000)
        kept.store(source(10_000), as: "a", until: now + .seconds(5))
        kept.store(source(30_001), as: "b", until: now + .seconds(5))
        #expect(kept.source("a", at: now) != nil && kept.source("b", at: now) == nil)
        var none = AssetLRUCache(capacity: 0)
        none.store(source(0), as: "a", until: now + .seconds(5))
        #expect(none.source("a", at: now) == nil && none.bytes == 0)
    }

    @Test func anotherOfTheSameNameTakesItsPlace() {
        var kept = AssetLRUCache(capacity: 100_000)
        kept.store(source(20_000), as: "a", until: now + .seconds(5))
        kept.store(source(1), as: "a", until: now + .seconds(9))
        #expect(kept.source("a", at: now + .seconds(8))?.body.count == 1)
        #expect(kept.bytes == AssetLRUCache.leastCost)
        // It has grown too large: what was there under its name is no longer true.
        kept.store(source(100_001), as: "a", until: now + .seconds(9))
        #expect(kept.source("a", at: now) == nil && kept.bytes == 0)
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
