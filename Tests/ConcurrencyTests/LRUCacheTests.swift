import Concurrency
import TestSupport
import Testing

@Suite struct LRUCacheTests {
    @Test func evictsTheLeastRecentlyUsedFirst() {
        var values = LRUCache<String, Int>(capacity: 30)
        for (index, key) in ["a", "b", "c"].enumerated() { #expect(values.insert(index, for: key, cost: 10).isEmpty) }
        #expect(values.value(for: "a") == 0)
        #expect(values.insert(3, for: "d", cost: 15).map(\.key) == ["b", "c"])
        #expect(values.cost == 25 && values.count == 2)
        #expect(values.value(for: "b") == nil && values.value(for: "d") == 3)
        #expect(values.evict(toCost: 20).map(\.key) == ["a"])
    }

    @Test func oversizedInsertOnlyRemovesTheOldValue() {
        var values = LRUCache<String, Int>(capacity: 30)
        values.insert(1, for: "a", cost: 10)
        values.insert(2, for: "b", cost: 10)
        #expect(values.insert(3, for: "a", cost: 31).map(\.value) == [1])
        #expect(values.peek("a") == nil && values.peek("b") == 2 && values.cost == 10)
    }

    @Test func peekDoesNotCountAsUse() {
        var values = LRUCache<String, Int>(capacity: 20)
        #expect(values.leastRecentlyUsed == nil)
        values.insert(1, for: "a", cost: 10)
        values.insert(2, for: "b", cost: 10)
        #expect(values.peek("a") == 1 && values.leastRecentlyUsed?.key == "a")
        #expect(values.insert(3, for: "c", cost: 10).map(\.key) == ["a"])
        values.removeAll()
        #expect(values.count == 0 && values.cost == 0 && values.peek("c") == nil)
    }

    /// Compares the cache with a plain list in order of use.
    @Test func behavesLikeAListInOrderOfUse() {
        var random = SeededNumbers(seed: 7)
        for capacity in [0, 1, 50, 200] {
            var values = LRUCache<Int, Int>(capacity: capacity)
            var list: [(key: Int, value: Int, cost: Int)] = []
            for step in 0..<5000 {
                let key = Int(random.next() % 20)
                switch random.next() % 4 {
                case 0, 1:
                    let cost = Int(random.next() % 60)
                    let evicted = values.insert(step, for: key, cost: cost).map(\.key)
                    var expected: [Int] = []
                    if let old = list.firstIndex(where: { $0.key == key }) { expected.append(list.remove(at: old).key) }
                    if cost <= capacity {
                        while list.reduce(0, { $0 + $1.cost }) + cost > capacity {
                            expected.append(list.removeFirst().key)
                        }
                        list.append((key, step, cost))
                    }
                    #expect(evicted == expected)
                case 2:
                    let index = list.firstIndex { $0.key == key }
                    #expect(values.value(for: key) == index.map { list[$0].value })
                    if let index { list.append(list.remove(at: index)) }
                default:
                    let index = list.firstIndex { $0.key == key }
                    #expect(values.remove(key) == index.map { list[$0].value })
                    if let index { list.remove(at: index) }
                }
                #expect(values.count == list.count && values.cost == list.reduce(0) { $0 + $1.cost })
            }
        }
    }
}
