import TestSupport
import Testing

@testable import HalcyonKit

/// The dictionary behind the memory of image loaders.
@Suite struct LRUCacheTests {
    @Test func evictsTheLeastRecentlyUsedByCost() {
        var cache = LRUCache<String, Int>(costLimit: 100, countLimit: 10)
        cache.insert(1, for: "a", cost: 40)
        cache.insert(2, for: "b", cost: 40)
        #expect(cache.value(for: "a") == 1)
        cache.insert(3, for: "c", cost: 40)
        #expect(cache.value(for: "b") == nil && cache.value(for: "a") == 1 && cache.value(for: "c") == 3)
        #expect(cache.cost == 80 && cache.count == 2)
        cache.insert(4, for: "d", cost: 100)
        #expect(cache.count == 1 && cache.value(for: "d") == 4)
        cache.insert(5, for: "d", cost: 101)
        #expect(cache.count == 0 && cache.cost == 0, "a value that is too large replaces the former one by none")
    }

    @Test func evictsTheLeastRecentlyUsedByCount() {
        var cache = LRUCache<Int, Int>(costLimit: .max, countLimit: 3)
        for number in 0..<5 { cache.insert(number, for: number, cost: 0) }
        #expect((0..<5).map { cache.value(for: $0) } == [nil, nil, 2, 3, 4])
        var none = LRUCache<Int, Int>(costLimit: .max, countLimit: 0)
        none.insert(1, for: 1, cost: 0)
        #expect(none.count == 0)
    }

    @Test func trims() {
        var cache = LRUCache<Int, Int>(costLimit: 100, countLimit: 100)
        for number in 0..<10 { cache.insert(number, for: number, cost: 10) }
        _ = cache.value(for: 0)
        cache.trim(toCost: 25)
        #expect((0..<10).filter { cache.value(for: $0) != nil } == [0, 9] && cache.cost == 20)
        cache.trim(toCost: -1)
        #expect(cache.count == 0)
    }

    /// An array in the order of use, which is slow and obvious.
    private struct Model {
        var entries: [(key: Int, value: Int, cost: Int)] = []

        mutating func value(for key: Int) -> Int? {
            guard let index = entries.firstIndex(where: { $0.key == key }) else { return nil }
            entries.append(entries.remove(at: index))
            return entries.last?.value
        }

        mutating func insert(_ value: Int, for key: Int, cost: Int) {
            entries.removeAll { $0.key == key }
            guard cost <= 50 else { return }
            entries.append((key, value, cost))
            while entries.reduce(0, { $0 + $1.cost }) > 50 || entries.count > 6 { entries.removeFirst() }
        }
    }

    @Test(arguments: 0..<20) func behavesLikeAnArrayInTheOrderOfUse(seed: Int) {
        var numbers = SeededNumbers(seed: UInt64(seed))
        var (cache, model) = (LRUCache<Int, Int>(costLimit: 50, countLimit: 6), Model())
        for step in 0..<500 {
            let key = Int.random(in: 0..<10, using: &numbers)
            switch Int.random(in: 0..<10, using: &numbers) {
            case 0..<4: #expect(cache.value(for: key) == model.value(for: key))
            case 4..<9:
                let cost = Int.random(in: 0...60, using: &numbers)
                cache.insert(step, for: key, cost: cost)
                model.insert(step, for: key, cost: cost)
            default:
                cache.remove(key)
                model.entries.removeAll { $0.key == key }
            }
            #expect(cache.count == model.entries.count && cache.cost == model.entries.reduce(0) { $0 + $1.cost })
        }
    }
}
