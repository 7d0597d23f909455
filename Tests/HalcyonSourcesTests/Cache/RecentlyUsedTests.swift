import Testing

@testable import HalcyonSources

@Suite struct RecentlyUsedTests {
    @Test func whatWasNotUsedForLongestGoesFirst() {
        var values = RecentlyUsed<String, Int>(capacity: 30)
        for (index, key) in ["a", "b", "c"].enumerated() { #expect(values.put(index, cost: 10, as: key).isEmpty) }
        #expect(values.use("a") == 0)
        #expect(values.put(3, cost: 15, as: "d").map(\.key) == ["b", "c"])
        #expect(values.cost == 25 && values.count == 2)
        #expect(values.use("b") == nil && values.use("d") == 3)
        #expect(values.shrink(to: 20).map(\.key) == ["a"])
    }

    @Test func whatCostsTooMuchIsNotTakenAndTheOldValueOfItsKeyGoes() {
        var values = RecentlyUsed<String, Int>(capacity: 30)
        values.put(1, cost: 10, as: "a")
        values.put(2, cost: 10, as: "b")
        #expect(values.put(3, cost: 31, as: "a").map(\.value) == [1])
        #expect(!values.contains("a") && values.contains("b") && values.cost == 10)
    }

    /// Against the plainest thing that does the same.
    @Test func doesWhatAListInTheOrderOfUseDoes() {
        var random = SplitMix(state: 7)
        for capacity in [0, 1, 50, 200] {
            var values = RecentlyUsed<Int, Int>(capacity: capacity)
            var list: [(key: Int, value: Int, cost: Int)] = []
            for step in 0..<5000 {
                let key = Int(random.next() % 20)
                switch random.next() % 4 {
                case 0, 1:
                    let cost = Int(random.next() % 60)
                    let gone = values.put(step, cost: cost, as: key).map(\.key)
                    var expected: [Int] = []
                    if let old = list.firstIndex(where: { $0.key == key }) { expected.append(list.remove(at: old).key) }
                    if cost <= capacity {
                        while list.reduce(0, { $0 + $1.cost }) + cost > capacity {
                            expected.append(list.removeFirst().key)
                        }
                        list.append((key, step, cost))
                    }
                    #expect(gone == expected)
                case 2:
                    let place = list.firstIndex { $0.key == key }
                    #expect(values.use(key) == place.map { list[$0].value })
                    if let place { list.append(list.remove(at: place)) }
                default:
                    let place = list.firstIndex { $0.key == key }
                    #expect(values.remove(key) == place.map { list[$0].value })
                    if let place { list.remove(at: place) }
                }
                #expect(values.count == list.count && values.cost == list.reduce(0) { $0 + $1.cost })
            }
        }
    }
}

/// Vigna's SplitMix64.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}
