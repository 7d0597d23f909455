import HalcyonModel
import HalcyonWire
import JSON
import Kafka
import Threads

/// An event as it goes to all who follow: its frame of the event stream is made once for all of them, and it is parsed once at most.
final class FeedRecord: Sendable {
    /// What filters ask for.
    struct Facts: Sendable {
        /// Behind the prefix `halcyon.image.`.
        let type: String
        /// The source.
        let subject: String?
        /// nil for an event that is about no job.
        let jobID: String?

        /// As CloudEvents has it.
        var fullType: String { Event.typePrefix + type }
    }

    let partition: Int32
    let offset: Int64
    /// How far the feed has come with it.
    let cursor: TopicCursor
    /// With the feed's own cursor as its id.
    let frame: [UInt8]
    /// Where its JSON stands in that.
    private let jsonStart: Int
    private let parsed = Lock<Facts??>(nil)

    /// - Parameters:
    ///   - json: the record's value.
    ///   - cursor: behind it.
    init(_ record: ConsumedRecord, _ json: [UInt8], _ cursor: TopicCursor) {
        (partition, offset) = (record.partition, record.offset)
        self.cursor = cursor
        let head = ServerSentEvents.id(cursor) + ServerSentEvents.dataName
        jsonStart = head.count
        frame = head + json.onOneLine + ServerSentEvents.end
    }

    /// The event.
    var json: [UInt8] { Array(frame[jsonStart..<frame.count - ServerSentEvents.end.count]) }

    /// What it costs in memory, about.
    var bytes: Int { frame.count + cursor.next.count * 8 + 256 }

    /// The frame for who has come so far with it.
    func frame(at cursor: TopicCursor) -> [UInt8] {
        cursor == self.cursor
            ? frame : ServerSentEvents.id(cursor) + frame[(jsonStart - ServerSentEvents.dataName.count)...]
    }

    /// nil for what is no event of Halcyon.
    var facts: Facts? {
        if let known = parsed.withLock({ $0 }) { return known }
        // Two may parse at once, and find the same.
        let facts = EventView(json: json).map { Facts(type: $0.type, subject: $0.subject, jobID: $0.jobID) }
        parsed.withLock { $0 = .some(facts) }
        return facts
    }
}
