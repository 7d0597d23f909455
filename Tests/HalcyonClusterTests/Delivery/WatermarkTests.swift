import Testing

@testable import HalcyonCluster

@Suite struct WatermarkTests {
    @Test func neverPassesAnUnfinishedJob() {
        var watermark = Watermark(startingAt: 10)
        for offset in Int64(10)..<14 { expect(watermark.take(offset), .taken) }
        expect(watermark.end(12), false)
        #expect(watermark.base == 10)
        #expect(watermark.ended.runs == [12..<13])
        expect(watermark.end(10), true)
        #expect(watermark.base == 11)
        expect(watermark.end(11), true)
        #expect(watermark.base == 13)
        #expect(watermark.ended == OffsetMap(from: 13))
        expect(watermark.end(13), true)
        #expect(watermark.base == 14)
        #expect(watermark.incomplete.isEmpty)
    }

    @Test func countsGapsAsDone() {
        var watermark = Watermark(startingAt: 0)
        for offset in [5, 6, 9] as [Int64] { expect(watermark.take(offset), .taken) }
        #expect(watermark.base == 5)
        #expect(watermark.ended.runs == [7..<9])
        expect(watermark.end(5), true)
        expect(watermark.end(6), true)
        #expect(watermark.base == 9)
        expect(watermark.end(9), true)
        #expect(watermark.base == 10)
    }

    @Test func takesNothingTwice() {
        var watermark = Watermark(startingAt: 3)
        expect(watermark.take(3), .taken)
        expect(watermark.take(3), .cameBefore)
        expect(watermark.take(2), .cameBefore)
        expect(watermark.end(3), true)
        expect(watermark.end(3), false)
        expect(watermark.end(99), false)
        #expect(watermark.base == 4)
    }

    @Test func takesNothingThatAnOwnerBeforeHasEnded() {
        var map = OffsetMap(from: 10)
        map.append(11..<13)
        map.append(20..<30)
        var watermark = Watermark(startingAt: 10, map: map)
        expect(watermark.take(10), .taken)
        expect(watermark.take(11), .hasEnded)
        expect(watermark.take(12), .hasEnded)
        expect(watermark.take(13), .taken)
        #expect(watermark.ended.runs == [11..<13, 20..<30])
        expect(watermark.end(10), true)
        #expect(watermark.base == 13)
        // 14 to 24 are not there any more.
        expect(watermark.take(25), .hasEnded)
        expect(watermark.end(13), true)
        #expect(watermark.base == 26)
        #expect(watermark.ended.runs == [26..<30])
        expect(watermark.take(26), .hasEnded)
        #expect(watermark.base == 27)
        expect(watermark.take(40), .taken)
        #expect(watermark.base == 40)
        #expect(watermark.ended == OffsetMap(from: 40))
    }

    @Test func theEndPassesWhatIsNoRecord() {
        var map = OffsetMap(from: 10)
        map.append(12..<14)
        map.append(20..<22)
        var watermark = Watermark(startingAt: 10, map: map)
        expect(watermark.take(10), .taken)
        watermark.reachEnd(16)
        #expect(watermark.base == 10 && watermark.next == 16)
        _ = watermark.end(10)
        #expect(watermark.base == 16 && watermark.ended.runs == [20..<22])
        watermark.reachEnd(15)
        #expect(watermark.base == 16)
        watermark.reachEnd(21)
        #expect(watermark.base == 21)
        expect(watermark.take(21), .hasEnded)
        #expect(watermark.base == 22)
    }

    @Test(arguments: 0..<200) func agreesWithAPlainModelOverRandomOrders(seed: Int) {
        var dice = SplitMix(seed: UInt64(seed))
        var map = OffsetMap(from: 0)
        var done: Set<Int64> = []
        for offset in Int64(0)..<100 where Bool.random(using: &dice) {
            map.append(offset..<offset + 1)
            done.insert(offset)
        }
        var watermark = Watermark(startingAt: 0, map: map)
        var open: Set<Int64> = []
        var next: Int64 = 0
        for _ in 0..<200 {
            if Bool.random(using: &dice) || open.isEmpty {
                let offset = next + Int64.random(in: 0...2, using: &dice)
                // What is not there counts as done.
                done.formUnion(next..<offset)
                next = offset + 1
                expect(watermark.take(offset), done.contains(offset) ? .hasEnded : .taken)
                if !done.contains(offset) { open.insert(offset) }
            } else {
                let offset = open.randomElement(using: &dice)!
                open.remove(offset)
                done.insert(offset)
                _ = watermark.end(offset)
            }
            #expect(watermark.incomplete == open)
            // Nothing below the base is open, and the base is as high as that allows.
            #expect(watermark.base == open.min() ?? next)
            let ended = watermark.ended
            #expect((watermark.base..<next + 100).allSatisfy { ended.contains($0) == done.contains($0) })
        }
    }
}
