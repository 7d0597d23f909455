import HTTPServer

/// The output of an event stream and its position. Sends each event after its cursor once.
struct EventOutput: Sendable {
    private let writer: HTTPServer.BodyWriter
    private let query: EventQuery
    private let metrics: EventMetrics
    /// The position after all events that were sent or filtered out.
    private(set) var cursor: TopicCursor
    /// True if the output has reached the feed's position in all partitions. From then on it uses the cursors of the
    /// feed.
    private var isLevel = false

    /// The approximate size in bytes of a write.
    private static let batchBytes = 16 << 10

    init(_ writer: HTTPServer.BodyWriter, _ query: EventQuery, at cursor: TopicCursor, _ metrics: EventMetrics) {
        (self.writer, self.query, self.cursor, self.metrics) = (writer, query, cursor, metrics)
    }

    /// Sends the events that are new to the client and pass its filter.
    mutating func send(_ records: [BroadcastEvent]) async throws(HTTPServer.BodyError) {
        // A single frame is written without a copy, so that all clients share its memory.
        var (bytes, count): ([UInt8], Int) = ([], 0)
        for record in records {
            let isNew = cursor.isBefore(record.partition, record.offset)
            if isLevel { cursor = record.cursor } else { cursor.merge(record.cursor) }
            isLevel = isLevel || cursor == record.cursor
            guard isNew, query.filter.lets(record) else { continue }
            if query.isNamed, let name = record.attributes?.type { bytes += ServerSentEvents.name(name) }
            let frame = record.frame(at: cursor)
            if bytes.isEmpty { bytes = frame } else { bytes += frame }
            count += 1
            if bytes.count >= Self.batchBytes {
                try await writer.write(bytes)
                bytes = []
            }
        }
        metrics.sent.add(count)
        try await writer.write(bytes)
    }

    /// Moves past records that are not events or not part of the feed.
    mutating func advance(to cursor: TopicCursor) {
        self.cursor.merge(cursor)
        isLevel = false
    }

    /// Sends a keep-alive that contains the current position.
    func sign() async throws(HTTPServer.BodyError) {
        try await writer.write([UInt8(ascii: ":"), 10] + ServerSentEvents.id(cursor) + [10])
    }

    /// Reports that events were deleted before they could be sent, and continues at this position.
    mutating func gap(_ cursor: TopicCursor) async throws(HTTPServer.BodyError) {
        self.cursor = cursor
        isLevel = false
        try await writer.write(ServerSentEvents.name("gap") + ServerSentEvents.id(cursor) + ServerSentEvents.gap)
    }
}

/// The `text/event-stream` format (HTML Living Standard, 9.2).
enum ServerSentEvents {
    static let mediaType = "text/event-stream"
    static let dataName = Array("data: ".utf8)
    /// The end of a line and of the event.
    static let end = Array("\n\n".utf8)
    /// An empty comment, used as a keep-alive.
    static let comment = Array(":\n\n".utf8)

    /// The rest of an event that reports missing events.
    static let gap =
        Array(
            #"data: {"reason":"events were deleted before they could be sent; these are the oldest there are"}"#.utf8)
        + end

    /// Returns the line with the position. Followed by a blank line it is not an event: clients store the id and
    /// dispatch nothing.
    static func id(_ cursor: TopicCursor) -> [UInt8] { Array("id: \(cursor.text)\n".utf8) }

    /// Returns the line with the type of an event. The default type is `message`.
    static func name(_ name: String) -> [UInt8] { Array("event: \(name)\n".utf8) }

    /// Returns the line with the time that clients wait before they reconnect.
    static func retry(_ time: Duration) -> [UInt8] { Array("retry: \(Int(time / .milliseconds(1)))\n".utf8) }

    /// Creates a streamed response that proxies must neither cache nor buffer. The latter needs `X-Accel-Buffering` for
    /// nginx.
    static func response(
        _ write: @escaping @Sendable (HTTPServer.BodyWriter) async throws -> Void
    ) -> HTTPServer.Response {
        HTTPServer.Response(
            status: 200,
            headers: ["Content-Type": mediaType, "Cache-Control": "no-store", "X-Accel-Buffering": "no"],
            body: .stream(length: nil, write))
    }
}
