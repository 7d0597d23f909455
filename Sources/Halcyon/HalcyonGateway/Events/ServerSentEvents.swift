import HTTPServer

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
