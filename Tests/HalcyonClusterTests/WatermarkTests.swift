import Testing

@testable import HalcyonCluster

@Suite struct WatermarkTests {
    @Test func neverPassesAnUnfinishedJob() {
        var watermark = Watermark(startingAt: 10)
        for offset in Int64(10)..<14 { expect(watermark.take(offset), true) }
        expect(watermark.end(12), false)
        #expect(watermark.base == 10)
        expect(watermark.end(10), true)
        #expect(watermark.base == 11)
        expect(watermark.end(11), true)
        #expect(watermark.base == 13)
        expect(watermark.end(13), true)
        #expect(watermark.base == 14)
        #expect(watermark.inFlight == 0)
    }

    @Test func countsGapsAsDone() {
        var watermark = Watermark(startingAt: 0)
        for offset in [5, 6, 9] as [Int64] { expect(watermark.take(offset), true) }
        #expect(watermark.base == 5)
        expect(watermark.end(5), true)
        expect(watermark.end(6), true)
        #expect(watermark.base == 9)
        expect(watermark.end(9), true)
        #expect(watermark.base == 10)
    }

    @Test func takesNothingTwice() {
        var watermark = Watermark(startingAt: 3)
        expect(watermark.take(3), true)
        expect(watermark.take(3), false)
        expect(watermark.take(2), false)
        expect(watermark.end(3), true)
        expect(watermark.end(3), false)
        expect(watermark.end(99), false)
        #expect(watermark.base == 4)
    }

    @Test func agreesWithAPlainModelOverRandomOrders() {
        for _ in 0..<300 {
            var watermark = Watermark(startingAt: 0)
            var taken: [Int64] = []
            var open: Set<Int64> = []
            var next: Int64 = 0
            for _ in 0..<100 {
                if Bool.random() || open.isEmpty {
                    next += Int64.random(in: 0...2)
                    expect(watermark.take(next), true)
                    taken.append(next)
                    open.insert(next)
                    next += 1
                } else {
                    let offset = open.randomElement()!
                    open.remove(offset)
                    _ = watermark.end(offset)
                }
                #expect(watermark.inFlight == open.count)
                // Nothing below the base is open, and the base is as high as that allows.
                #expect(watermark.base == open.min() ?? next)
            }
        }
    }

    /// `#expect` takes no mutating calls.
    func expect(_ found: Bool, _ expected: Bool, at location: SourceLocation = #_sourceLocation) {
        #expect(found == expected, sourceLocation: location)
    }
}
