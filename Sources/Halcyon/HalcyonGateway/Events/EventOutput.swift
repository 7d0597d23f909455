import HTTPServer

/// What a client is sent, and how far it has come with that. Each event behind its cursor is sent once.
struct EventOutput: Sendable {
    private let writer: HTTPServer.BodyWriter
    private let query: EventQuery
    private let metrics: EventMetrics
    /// Behind all that was sent, or passed over by the filter.
    private(set) var cursor: TopicCursor
    /// Whether it has come as far as the feed in all partitions: then it goes on as the feed does.
    private var isLevel = false

    /// About how many bytes are written at once.
    private static let batchBytes = 16 << 10

    init(_ writer: HTTPServer.BodyWriter, _ query: EventQuery, at cursor: TopicCursor, _ metrics: EventMetrics) {
        (self.writer, self.query, self.cursor, self.metrics) = (writer, query, cursor, metrics)
    }

    /// Sends those that are yet to come for the client and pass its filter.
    mutating func send(_ records: [FeedRecord]) async throws(HTTPServer.BodyError) {
        // A single frame is written as it is, and so there once for all clients.
        var (bytes, count): ([UInt8], Int) = ([], 0)
        for record in records {
            let isNew = cursor.isBefore(record.partition, record.offset)
            if isLevel { cursor = record.cursor } else { cursor.merge(record.cursor) }
            isLevel = isLevel || cursor == record.cursor
            guard isNew, query.filter.lets(record) else { continue }
            if query.isNamed, let name = record.facts?.fullType { bytes += ServerSentEvents.name(name) }
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

    /// Goes past what is no event, or none of the feed's.
    mutating func advance(to cursor: TopicCursor) {
        self.cursor.merge(cursor)
        isLevel = false
    }

    /// A sign of life, by which the client learns how far it has come.
    func sign() async throws(HTTPServer.BodyError) {
        try await writer.write([UInt8(ascii: ":"), 10] + ServerSentEvents.id(cursor) + [10])
    }

    /// Says that events were deleted before they could be sent, and goes on from here.
    mutating func gap(_ cursor: TopicCursor) async throws(HTTPServer.BodyError) {
        self.cursor = cursor
        isLevel = false
        try await writer.write(ServerSentEvents.name("gap") + ServerSentEvents.id(cursor) + ServerSentEvents.gap)
    }
}

/// The format of `text/event-stream` (HTML Living Standard, 9.2).
enum ServerSentEvents {
    static let mediaType = "text/event-stream"
    static let dataName = Array("data: ".utf8)
    /// Of a line and of the event.
    static let end = Array("\n\n".utf8)
    /// Says nothing.
    static let comment = Array(":\n\n".utf8)

    /// The rest of an event that says that others are missing.
    static let gap =
        Array(
            #"data: {"reason":"events were deleted before they could be sent; these are the oldest there are"}"#.utf8)
        + end

    /// The line that names where to go on. With a blank line behind it, it is no event: a client remembers it and tells nobody.
    static func id(_ cursor: TopicCursor) -> [UInt8] { Array("id: \(cursor.text)\n".utf8) }

    /// The line that names an event's type; without one it is `message`.
    static func name(_ name: String) -> [UInt8] { Array("event: \(name)\n".utf8) }

    /// How long a client is to wait before it comes back.
    static func retry(_ time: Duration) -> [UInt8] { Array("retry: \(Int(time / .milliseconds(1)))\n".utf8) }

    /// A stream of them. A proxy must neither keep it nor collect it before handing it on (the second is nginx').
    static func response(
        _ write: @escaping @Sendable (HTTPServer.BodyWriter) async throws -> Void
    ) -> HTTPServer.Response {
        HTTPServer.Response(
            status: 200,
            headers: ["Content-Type": mediaType, "Cache-Control": "no-store", "X-Accel-Buffering": "no"],
            body: .stream(length: nil, write))
    }
}
