import TestSupport
import Testing

@testable import HalcyonCluster

@Suite struct CompletedRangesTests {
    /// Returns a map of random runs. Runs and gaps are mostly short, and some are long.
    static func random(_ generator: inout SeededNumbers, runs: Int) -> CompletedRanges {
        let base =
            Int.random(in: 0..<4, using: &generator) == 0 ? 0 : Int64.random(in: 0...(1 << 40), using: &generator)
        var map = CompletedRanges(from: base)
        var end = base
        for _ in 0..<runs {
            let start = end + length(&generator)
            end = start + length(&generator)
            map.append(start..<end)
        }
        return map
    }

    private static func length(_ generator: inout SeededNumbers) -> Int64 {
        Int64.random(
            in:
                1...(Int.random(in: 0..<5, using: &generator) == 0
                ? 1 << Int64.random(in: 1...36, using: &generator) : 40),
            using: &generator)
    }

    @Test func containsCompletedOffsets() {
        var map = CompletedRanges(from: 10)
        map.append(12..<14)
        map.append(14..<15)
        map.append(20..<21)
        map.append(18..<22)
        map.append(30..<30)
        #expect(map.runs == [12..<15, 20..<22])
        #expect((0..<32).filter { map.contains($0) } == Array(0..<10) + [12, 13, 14, 20, 21])
    }

    @Test(arguments: 0..<200) func commitMetadataRoundTrips(seed: Int) throws {
        var generator = SeededNumbers(seed: UInt64(seed))
        let map = Self.random(&generator, runs: Int.random(in: 1...60, using: &generator))
        let commitMetadata = map.commitMetadata(limit: 1 << 20)
        #expect(commitMetadata.untracked == 0)
        #expect(CompletedRanges(commitMetadata: commitMetadata.text, at: map.base) == map)
        #expect(commitMetadata.text.utf8.allSatisfy { 33...126 ~= $0 })
    }

    @Test func commitMetadataMatchesTheDocumentation() {
        // 3 incomplete, 97 completed, 1 incomplete, 1000 completed: 97 is 1 + 3 × 32, 1000 is 8 + 31 × 32.
        var map = CompletedRanges(from: 500)
        map.append(503..<600)
        map.append(601..<1601)
        // printf 'e1.500.DhDBof' | sha256sum
        #expect(map.commitMetadata(limit: 4096).text == "e1.5b0a123d.DhDBof")
    }

    @Test func encodesNothingAsEmptyText() {
        #expect(CompletedRanges(from: 7).commitMetadata(limit: 4096) == CommitMetadata(text: "", untracked: 0))
        #expect(CompletedRanges(commitMetadata: "", at: 7) == nil)
    }

    @Test func gapPerHundredOffsetsTakesThreeCharacters() {
        var map = CompletedRanges(from: 0)
        for gap in 0..<500 { map.append(Int64(gap * 100 + 1)..<Int64(gap * 100 + 100)) }
        let commitMetadata = map.commitMetadata(limit: 4096)
        // 50,000 offsets; as a bitmap in base64 they would take 8,334 characters.
        #expect(commitMetadata.untracked == 0)
        #expect(commitMetadata.text.utf8.count == 500 * 3 + 12)
    }

    @Test(arguments: 0..<20) func rejectsEveryTruncation(seed: Int) {
        var generator = SeededNumbers(seed: UInt64(seed))
        let map = Self.random(&generator, runs: 12)
        let text = map.commitMetadata(limit: 4096).text
        for length in 0..<text.utf8.count {
            #expect(CompletedRanges(commitMetadata: String(text.prefix(length)), at: map.base) == nil)
            #expect(CompletedRanges(commitMetadata: String(text.suffix(length)), at: map.base) == nil)
        }
    }

    @Test(arguments: 0..<20) func rejectsEveryFlippedBit(seed: Int) {
        var generator = SeededNumbers(seed: UInt64(seed))
        let map = Self.random(&generator, runs: 12)
        let text = Array(map.commitMetadata(limit: 4096).text.utf8)
        for index in text.indices {
            for bit in 0..<8 {
                var flipped = text
                flipped[index] ^= 1 << bit
                #expect(CompletedRanges(commitMetadata: String(decoding: flipped, as: UTF8.self), at: map.base) == nil)
            }
        }
    }

    @Test func rejectsMetadataOfAnotherOffset() {
        var map = CompletedRanges(from: 1000)
        map.append(1001..<1005)
        let text = map.commitMetadata(limit: 4096).text
        #expect(CompletedRanges(commitMetadata: text, at: 1000) == map)
        for offset in [-1, 0, 999, 1001, Int64.max] {
            #expect(CompletedRanges(commitMetadata: text, at: offset) == nil)
        }
    }

    @Test func rejectsForeignMetadata() {
        var map = CompletedRanges(from: 0)
        map.append(1..<5)
        let text = map.commitMetadata(limit: 4096).text
        let foreign = [
            " ", ".", "..", "...", "e1", "e1.", "e1..", "{}", "null", "NULL", "metadata", "\u{0}", "é",
            String(repeating: "A", count: 4096), text + ".", text + "A", "." + text, text.uppercased(), text + "\n",
            // The next version of the format, with another checksum.
            "e2" + text.dropFirst(2),
        ]
        for other in foreign { #expect(CompletedRanges(commitMetadata: other, at: 0) == nil, "\(other)") }
    }

    /// Invalid texts with a valid checksum, as one corruption in four thousand million would produce.
    @Test(arguments: [
        "", "A", "B", "AA", "BA", "AAB", "BBAB", "BBBA", "BB B", "g", "Bg", "ghgh", "gAB", "BgA", "B.B",
        // 2⁶³, and thirteen digits with a greater sum.
        "ggggggggggggIB", "BggggggggggggI", "__________________", "____________HB", "____________H____________H",
    ])
    func rejectsInvalidRangesWithAValidChecksum(lengths: String) {
        #expect(CompletedRanges(commitMetadata: CommitMetadata.seal(lengths, at: 9), at: 9) == nil)
    }

    @Test func roundTripsTheLargestOffsets() {
        var map = CompletedRanges(from: 0)
        map.append((Int64.max - 1)..<Int64.max)
        #expect(CompletedRanges(commitMetadata: map.commitMetadata(limit: 4096).text, at: 0) == map)
        map = CompletedRanges(from: Int64.max - 1)
        map.append((Int64.max - 1)..<Int64.max)
        #expect(CompletedRanges(commitMetadata: map.commitMetadata(limit: 4096).text, at: Int64.max - 1) == map)
    }

    /// The largest maps: gaps and runs of equal length, from every other offset to lengths of many digits.
    @Test(arguments: [1, 31, 32, 1023, 1024, 1 << 30] as [Int64], [0, 11, 12, 13, 14, 15, 100, 4095, 4096])
    func omitsTheHighestRangesBeyondTheLimit(length: Int64, limit: Int) throws {
        var map = CompletedRanges(from: 77)
        for number in 0..<5000 {
            let start = 77 + length + Int64(number) * 2 * length
            map.append(start..<start + length)
        }
        // All runs have the same length in the text.
        let room = (map.commitMetadata(limit: 1 << 20).text.utf8.count - 12) / 5000
        let commitMetadata = map.commitMetadata(limit: limit)
        #expect(commitMetadata.text.utf8.count <= limit)
        let read = CompletedRanges(commitMetadata: commitMetadata.text, at: 77)?.runs ?? []
        #expect(read == Array(map.runs.prefix(read.count)))
        #expect(read.count == min(5000, max(0, limit - 12) / room))
        #expect(commitMetadata.untracked == Int(length) * (5000 - read.count))
    }
}
