import HalcyonCoding
import TestSupport

/// A client of event streams that parses them like a browser's `EventSource` (HTML Living Standard, 9.2), but does not
/// reconnect.
final class EventClient {
    /// A message of a stream.
    struct Message: Equatable {
        var name = "message"
        var data = ""
        /// The last event id at the time of the message.
        var id = ""
    }

    /// The response was not a stream.
    struct UnexpectedResponse: Error {
        let answer: RawClient.RawResponse
    }

    /// The head of the response.
    let head: RawClient.RawResponse
    private let client: RawClient
    private var unread: [UInt8] = []
    private var current = Message()
    private var hasData = false
    /// The id with which a client would resume.
    private(set) var lastEventID = ""
    /// The reconnection time in milliseconds, if the stream has sent it.
    private(set) var retry: Int?
    private var comments = 0

    /// - Throws: ``UnexpectedResponse`` if the response is not a stream.
    init(
        _ port: UInt16, _ query: String = "", path: String = "/v1/events", from cursor: String? = nil
    ) async throws {
        client = try RawClient(port)
        let header = cursor.map { "Last-Event-ID: \($0)\r\n" } ?? ""
        try await client.send("GET \(path)\(query) HTTP/1.1\r\nHost: localhost\r\n\(header)\r\n")
        head = try await client.head()
        guard head.status == 200 else {
            throw UnexpectedResponse(answer: head)
        }
    }

    /// Returns the next message; nil if the stream has ended properly.
    /// - Throws: `RawClient.Closed` if the connection was closed before.
    func next() async throws -> Message? {
        while let line = try await line() {
            if let message = parse(line) { return message }
        }
        return nil
    }

    /// Returns the job ids of the next events.
    func jobs(_ count: Int) async throws -> [String] {
        try await data(count).map { DecodedEvent(json: Array($0.utf8))?.jobID ?? $0 }
    }

    /// Returns the data of the next messages.
    func data(_ count: Int) async throws -> [String] {
        var found: [String] = []
        while found.count < count {
            guard let message = try await next() else { throw RawClient.Closed() }
            found.append(message.data)
        }
        return found
    }

    /// Reads until the stream has sent its first id.
    func waitForStart() async throws {
        while lastEventID.isEmpty {
            guard let line = try await line() else { throw RawClient.Closed() }
            _ = parse(line)
        }
    }

    /// Reads until this is true of the number of keep-alives received.
    func readKeepAlives(until isReached: (Int) -> Bool) async throws {
        while !isReached(comments) {
            guard let line = try await line() else { throw RawClient.Closed() }
            _ = parse(line)
        }
    }

    private func line() async throws -> String? {
        while true {
            if let end = unread.firstIndex(of: 10) {
                defer { unread.removeFirst(end + 1) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            guard let chunk = try await client.chunk() else { return nil }
            unread += chunk
        }
    }

    private func parse(_ line: String) -> Message? {
        if line.isEmpty {
            defer { (current, hasData) = (Message(), false) }
            current.id = lastEventID
            return hasData ? current : nil
        }
        let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let value = parts.count == 2 ? String(parts[1].first == " " ? parts[1].dropFirst() : parts[1]) : ""
        switch parts[0] {
        case "": comments += 1
        case "id": lastEventID = value
        case "event": current.name = value
        case "retry": retry = Int(value)
        case "data":
            current.data += (hasData ? "\n" : "") + value
            hasData = true
        default: break
        }
        return nil
    }
}
