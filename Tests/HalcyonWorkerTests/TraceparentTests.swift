import HalcyonCluster
import Kafka
import Testing

@testable import HalcyonWorker

/// The trace context that events inherit from a message, as far as the schema of events allows it.
struct TraceparentTests {
    private static let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    private static func read(_ value: String?) -> String? {
        ConsumedRecord(
            topic: "halcyon.jobs", partition: 0, offset: 0, value: [],
            headers: [RecordHeader("traceparent", value.map { Array($0.utf8) })]
        ).traceparent
    }

    @Test func acceptsAValidTraceparent() { #expect(Self.read(Self.text) == Self.text) }

    @Test func truncatesFutureVersionsToKnownFields() {
        let later = "01" + Self.text.dropFirst(2)
        #expect(Self.read(later + "-more") == later)
    }

    @Test(arguments: [nil, "", "rubbish", text + "-more", text.uppercased(), String(text.dropLast()), "\u{1}\(text)"])
    func rejectsInvalidValues(_ value: String?) { #expect(Self.read(value) == nil) }
}
