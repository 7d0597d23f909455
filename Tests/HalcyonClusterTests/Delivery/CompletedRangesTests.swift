import Testing

@testable import HalcyonCluster

@Suite struct CompletedRangesTests {
    /// A map of random runs; short ones and small gaps, and now and then a long one.
    static func random(_ dice: inout SplitMix, runs: Int) -> CompletedRanges {
        let base = Int.random(in: 0..<4, using: &dice) == 0 ? 0 : Int64.random(in: 0...(1 << 40), using: &dice)
        var map = CompletedRanges(from: base)
        var end = base
        for _ in 0..<runs {
            let start = end + length(&dice)
            end = start + length(&dice)
            map.append(start..<end)
        }
        return map
    }

    private static func length(_ dice: inout SplitMix) -> Int64 {
        Int64.random(
            in: 1...(Int.random(in: 0..<5, using: &dice) == 0 ? 1 << Int64.random(in: 1...36, using: &dice) : 40),
            using: &dice)
    }

    @Test func knowsWhatHasEnded() {
        var map = CompletedRanges(from: 10)
        map.append(12..<14)
        map.append(14..<15)
        map.append(20..<21)
        map.append(18..<22)
        map.append(30..<30)
        #expect(map.runs == [12..<15, 20..<22])
        #expect((0..<32).filter { map.contains($0) } == Array(0..<10) + [12, 13, 14, 20, 21])
    }

    @Test(arguments: 0..<200) func itsTextIsReadBack(seed: Int) throws {
        var dice = SplitMix(seed: UInt64(seed))
        let map = Self.random(&dice, runs: Int.random(in: 1...60, using: &dice))
        let commitMetadata = map.commitMetadata(limit: 1 << 20)
        #expect(commitMetadata.untracked == 0)
        #expect(CompletedRanges(commitMetadata: commitMetadata.text, at: map.base) == map)
        #expect(commitMetadata.text.utf8.allSatisfy { 33...126 ~= $0 })
    }

    @Test func theTextIsTheDocumentedOne() {
        // 3 to be done, 97 ended, 1 to be done, 1000 ended: 97 is 1 + 3 × 32, 1000 is 8 + 31 × 32.
        var map = CompletedRanges(from: 500)
        map.append(503..<600)
        map.append(601..<1601)
        // printf 'e1.500.DhDBof' | sha256sum
        #expect(map.commitMetadata(limit: 4096).text == "e1.5b0a123d.DhDBof")
    }

    @Test func nothingEndedIsNoText() {
        #expect(CompletedRanges(from: 7).commitMetadata(limit: 4096) == CommitMetadata(text: "", untracked: 0))
        #expect(CompletedRanges(commitMetadata: "", at: 7) == nil)
    }

    @Test func oneHoleInAHundredTakesThreeCharacters() {
        var map = CompletedRanges(from: 0)
        for hole in 0..<500 { map.append(Int64(hole * 100 + 1)..<Int64(hole * 100 + 100)) }
        let commitMetadata = map.commitMetadata(limit: 4096)
        // 50,000 offsets; as a bitmap in base64 they would take 8,334 characters.
        #expect(commitMetadata.untracked == 0)
        #expect(commitMetadata.text.utf8.count == 500 * 3 + 12)
    }

    @Test(arguments: 0..<20) func everyTruncationIsNoMap(seed: Int) {
        var dice = SplitMix(seed: UInt64(seed))
        let map = Self.random(&dice, runs: 12)
        let text = map.commitMetadata(limit: 4096).text
        for length in 0..<text.utf8.count {
            #expect(CompletedRanges(commitMetadata: String(text.prefix(length)), at: map.base) == nil)
            #expect(CompletedRanges(commitMetadata: String(text.suffix(length)), at: map.base) == nil)
        }
    }

    @Test(arguments: 0..<20) func everyFlippedBitIsNoMap(seed: Int) {
        var dice = SplitMix(seed: UInt64(seed))
        let map = Self.random(&dice, runs: 12)
        let text = Array(map.commitMetadata(limit: 4096).text.utf8)
        for place in text.indices {
            for bit in 0..<8 {
                var flipped = text
                flipped[place] ^= 1 << bit
                #expect(CompletedRanges(commitMetadata: String(decoding: flipped, as: UTF8.self), at: map.base) == nil)
            }
        }
    }

    @Test func aMapBesideAnotherOffsetIsNone() {
        var map = CompletedRanges(from: 1000)
        map.append(1001..<1005)
        let text = map.commitMetadata(limit: 4096).text
        #expect(CompletedRanges(commitMetadata: text, at: 1000) == map)
        for offset in [-1, 0, 999, 1001, Int64.max] {
            #expect(CompletedRanges(commitMetadata: text, at: offset) == nil)
        }
    }

    @Test func foreignTextsAreNoMap() {
        var map = CompletedRanges(from: 0)
        map.append(1..<5)
        let text = map.commitMetadata(limit: 4096).text
        let foreign = [
            " ", ".", "..", "...", "e1", "e1.", "e1..", "{}", "null", "NULL", "metadata", "\u{0}", "é",
            String(repeating: "A", count: 4096), text + ".", text + "A", "." + text, text.uppercased(), text + "\n",
            // The next version, sealed in its own way.
            "e2" + text.dropFirst(2),
        ]
        for other in foreign { #expect(CompletedRanges(commitMetadata: other, at: 0) == nil, "\(other)") }
    }

    /// With a right checksum: what somebody wrote who knew how, or what one damage in four thousand million would look like.
    @Test(arguments: [
        "", "A", "B", "AA", "BA", "AAB", "BBAB", "BBBA", "BB B", "g", "Bg", "ghgh", "gAB", "BgA", "B.B",
        // 2⁶³, and thirteen digits that add up to more.
        "ggggggggggggIB", "BggggggggggggI", "__________________", "____________HB", "____________H____________H",
    ])
    func sealedNonsenseIsNoMap(lengths: String) {
        #expect(CompletedRanges(commitMetadata: CommitMetadata.seal(lengths, at: 9), at: 9) == nil)
    }

    @Test func theGreatestNumbersAreRead() {
        var map = CompletedRanges(from: 0)
        map.append((Int64.max - 1)..<Int64.max)
        #expect(CompletedRanges(commitMetadata: map.commitMetadata(limit: 4096).text, at: 0) == map)
        map = CompletedRanges(from: Int64.max - 1)
        map.append((Int64.max - 1)..<Int64.max)
        #expect(CompletedRanges(commitMetadata: map.commitMetadata(limit: 4096).text, at: Int64.max - 1) == map)
    }

    /// What takes most room: every other offset, and gaps and runs that need many digits each.
    @Test(arguments: [1, 31, 32, 1023, 1024, 1 << 30] as [Int64], [0, 11, 12, 13, 14, 15, 100, 4095, 4096])
    func whatDoesNotFitIsLeftOutFromTheTop(length: Int64, limit: Int) throws {
        var map = CompletedRanges(from: 77)
        for number in 0..<5000 {
            let start = 77 + length + Int64(number) * 2 * length
            map.append(start..<start + length)
        }
        // Each run takes as much as any other.
        let room = (map.commitMetadata(limit: 1 << 20).text.utf8.count - 12) / 5000
        let commitMetadata = map.commitMetadata(limit: limit)
        #expect(commitMetadata.text.utf8.count <= limit)
        let read = CompletedRanges(commitMetadata: commitMetadata.text, at: 77)?.runs ?? []
        #expect(read == Array(map.runs.prefix(read.count)))
        #expect(read.count == min(5000, max(0, limit - 12) / room))
        #expect(commitMetadata.untracked == Int(length) * (5000 - read.count))
    }
}
