import Formats
import Foundation
import TestSupport
import Testing

@Suite struct TimestampTests {
    @Test func formatsLikeFoundation() {
        var numbers = SeededNumbers(seed: 4)
        let formatter = ISO8601DateFormatter()
        formatter.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        for _ in 0..<2_000 {
            let milliseconds = Int.random(in: -11_000_000_000_000...16_000_000_000_000, using: &numbers)
            let seconds = Double(milliseconds) / 1000
            let text = Timestamp(seconds: seconds).rfc3339
            // Foundation truncates, so a little is added for what binary fractions lose.
            #expect(text == formatter.string(from: Date(timeIntervalSince1970: seconds + 0.0004)))
            #expect(Timestamp(rfc3339: text)?.milliseconds == Int64(milliseconds))
        }
    }

    @Test(arguments: [
        ("1994-11-06T08:49:37Z", 784_111_777.0), ("1994-11-06t09:49:37.5+01:00", 784_111_777.5),
        ("1994-11-06 02:49:37-06:00", 784_111_777), ("2020-02-29T00:00:00Z", 1_582_934_400),
    ])
    func readsOffsetsAndFractions(text: String, seconds: Double) {
        #expect(Timestamp(rfc3339: text)?.seconds == seconds)
    }

    @Test(arguments: [
        "", "now", "1994-11-06", "1994-11-06T08:49:37", "1994-13-06T08:49:37Z", "1994-02-30T08:49:37Z",
        "1994-11-06T24:49:37Z", "1994-11-06T08:49:37.Z", "1994-11-06T08:49:37Zz", "1994-11-06T08:49:37+0100",
    ])
    func rejectsInvalidTimestamps(text: String) {
        #expect(Timestamp(rfc3339: text) == nil)
    }

    @Test func nanosecondsUseTheSameClock() {
        let (before, found, after) = (Timestamp.now.milliseconds, Timestamp.nanoseconds, Timestamp.now.milliseconds)
        #expect((before...after).contains(found / 1_000_000))
        // Finer than milliseconds, at least once.
        #expect((0..<100).contains { _ in Timestamp.nanoseconds % 1_000_000 != 0 })
    }
}
