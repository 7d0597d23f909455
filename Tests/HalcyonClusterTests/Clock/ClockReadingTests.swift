import Formats
import Testing

@testable import HalcyonCluster

@Suite struct ClockReadingTests {
    /// The lead of the server's clock when the reply arrives, the round-trip time, and the correction, in milliseconds.
    @Test(
        arguments: [
            (3_600_000, 0, 3_600_000), (-3_600_000, 0, -3_600_000), (0, 0, 0), (1000, 0, 0), (-1000, 0, 0),
            (1001, 0, 1001),
            // The server read its clock half a round trip earlier.
            (1_900, 200, 2_000), (-2_100, 200, -2_000), (950, 200, 1_050), (10_000, 1000, 10_500), (10_000, 1001, nil),
        ] as [(Int64, Int64, Int64?)])
    func correctsClocksOffByMoreThanASecond(ahead: Int64, roundTrip: Int64, correction: Int64?) {
        let system = Timestamp(milliseconds: 1_790_000_000_000)
        let reading = ClockReading(
            server: Timestamp(milliseconds: system.milliseconds + ahead), system: system,
            roundTrip: .milliseconds(roundTrip))
        #expect(reading.correction == correction)
    }
}
