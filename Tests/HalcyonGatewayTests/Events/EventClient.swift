import HalcyonCoding
import TestSupport

/// A client of the event stream, as a browser's `EventSource` is one (HTML Living Standard, 9.2), but for coming back.
final class EventClient {
    /// What a stream has said.
    struct Message: Equatable {
        var name = "message"
        var data = ""
        /// The last one named when it came.
        var id = ""
    }

    /// The stream was not begun.
    struct Refused: Error {
        let answer: RawClient.RawResponse
    }

    /// The head of the answer.
    let head: RawClient.RawResponse
    private let client: RawClient
    private var unread: [UInt8] = []
    private var current = Message()
    private var hasData = false
    /// Where it would go on.
    private(set) var lastEventID = ""
    /// Milliseconds, where the stream said so.
    private(set) var retry: Int?
    private var comments = 0

    /// - Throws: ``Refused`` for an answer that is no stream.
    init(
        _ port: UInt16, _ query: String = "", path: String = "/v1/events", from cursor: String? = nil
    ) async throws {
        client = try RawClient(port)
        let header = cursor.map { "Last-Event-ID: \($0)\r\n" } ?? ""
        try await client.send("GET \(path)\(query) HTTP/1.1\r\nHost: localhost\r\n\(header)\r\n")
        head = try await client.head()
        guard head.status == 200 else {
            throw Refused(answer: head)
        }
    }

    /// The next message; nil when the stream has ended as it should.
    /// - Throws: `RawClient.Closed` when it was cut.
    func next() async throws -> Message? {
        while let line = try await line() {
            if let message = take(line) { return message }
        }
        return nil
    }

    /// The jobs of so many events, by their ids.
    func jobs(_ count: Int) async throws -> [String] {
        try await data(count).map { DecodedEvent(json: Array($0.utf8))?.jobID ?? $0 }
    }

    /// The data of so many messages.
    func data(_ count: Int) async throws -> [String] {
        var found: [String] = []
        while found.count < count {
            guard let message = try await next() else { throw RawClient.Closed() }
            found.append(message.data)
        }
        return found
    }

    /// Reads until the stream has named where it stands.
    func begun() async throws {
        while lastEventID.isEmpty {
            guard let line = try await line() else { throw RawClient.Closed() }
            _ = take(line)
        }
    }

    /// Reads on until this is true of how often the stream has said that it is there.
    func signsOfLife(_ areEnough: (Int) -> Bool) async throws {
        while !areEnough(comments) {
            guard let line = try await line() else { throw RawClient.Closed() }
            _ = take(line)
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

    private func take(_ line: String) -> Message? {
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
