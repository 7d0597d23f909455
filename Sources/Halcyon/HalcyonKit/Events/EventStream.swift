import Foundation

/// The events of a cluster, as they happen.
///
/// After the connection breaks, the stream reconnects, possibly to another gateway, and resumes after the last event:
/// none is missed, and none is delivered twice. It ends by an error that is not transient, or with the task that reads
/// it.
///
/// About twice ``HalcyonClient/Configuration/maximumEventBytes`` is buffered for a slow reader. Beyond that the stream
/// disconnects, and resumes when the reader has caught up.
public struct EventStream: AsyncSequence, Sendable {
    let transport: RetryingTransport
    let filter: Filter
    let cursor: String

    /// Creates an iterator. It connects when its first element is requested.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// An element of the stream.
    public struct Element: Sendable, Equatable {
        /// The content of an element.
        public enum Content: Sendable, Equatable {
            /// An event.
            case event(ImageEvent)
            /// Events of this stream were deleted before they could be sent. The text gives the reason.
            case gap(String)
        }

        /// The content.
        public let content: Content
        /// The position in the stream after this element, for ``HalcyonClient/events(_:after:)``. It is valid in other
        /// processes and with other gateways too.
        public let cursor: String

        /// The event; nil for a gap.
        public var event: ImageEvent? { if case .event(let event) = content { event } else { nil } }
    }

    /// Limits a stream to the events with one of the values in each list. An empty list matches everything.
    public struct Filter: Sendable, Hashable {
        /// A type of event.
        public struct EventType: RawRepresentable, Sendable, Hashable {
            /// The type without its prefix `halcyon.image.`, or `halcyon.` for the events of batches.
            public let rawValue: String
            /// Creates a type that has no static member here.
            public init(rawValue: String) { self.rawValue = rawValue }

            /// The types of the event schema.
            public static let started = Self(rawValue: "started"), progress = Self(rawValue: "progress"),
                ready = Self(rawValue: "ready"), failed = Self(rawValue: "failed"),
                cancelled = Self(rawValue: "cancelled"), superseded = Self(rawValue: "superseded"),
                purged = Self(rawValue: "purged"), batchProgress = Self(rawValue: "batch.progress"),
                batchCompleted = Self(rawValue: "batch.completed")
        }

        /// The types.
        public var types: [EventType]
        /// The ids of jobs.
        public var jobs: [String]
        /// The ids of batches. The events of their jobs match, too.
        public var batches: [String]
        /// The sources, as in the jobs.
        public var sources: [String]

        /// Creates a filter.
        public init(
            types: [EventType] = [], jobs: [String] = [], batches: [String] = [], sources: [String] = []
        ) {
            (self.types, self.jobs, self.batches, self.sources) = (types, jobs, batches, sources)
        }

        var query: [(name: String, value: String)] {
            let types = types.map(\.rawValue).joined(separator: ",")
            return (types.isEmpty ? [] : [("type", types)]) + jobs.map { ("job", $0) } + batches.map { ("batch", $0) }
                + sources.map { ("source", $0) }
        }
    }

    /// A reader of the stream.
    public struct Iterator: AsyncIteratorProtocol {
        private let stream: EventStream
        private var parser: ServerSentEvents
        private var backoff: Backoff
        private var body: AsyncThrowingStream<Data, any Error>.Iterator?
        private var messages: ArraySlice<ServerSentEvents.Message> = []
        private var configuration: HalcyonClient.Configuration { stream.transport.configuration }

        init(_ stream: EventStream) {
            let configuration = stream.transport.configuration
            self.stream = stream
            parser = ServerSentEvents(lastEventID: stream.cursor, limit: configuration.maximumEventBytes)
            backoff = Backoff(base: .seconds(2), maximum: configuration.maximumBackoff)
        }

        /// Waits for the next element. The result is never nil.
        /// - Throws: `HalcyonError`, unless it is transient; `CancellationError`.
        public mutating func next() async throws -> Element? {
            while true {
                if let message = messages.popFirst() { return try Self.element(message) }
                do { try await receive() } catch {
                    let pause = try pause(after: error)
                    if pause > .zero { try await Task.sleep(for: pause) }
                }
            }
        }

        /// Connects and waits for the current position of the stream.
        /// - Throws: `HalcyonError`, also if no gateway responds within `retryTimeout`; `CancellationError`.
        mutating func start() async throws -> String {
            let deadline = ContinuousClock.now + configuration.retryTimeout
            while parser.lastEventID.isEmpty {
                do { try await receive() } catch {
                    let pause = try pause(after: error)
                    guard ContinuousClock.now + pause < deadline else {
                        throw RetryingTransport.clientError(error, limit: configuration.maximumEventBytes)
                    }
                    try await Task.sleep(for: pause)
                }
            }
            return parser.lastEventID
        }

        /// Reads the next part of the response, of a new one if necessary.
        private mutating func receive() async throws {
            try Task.checkCancellation()
            if body == nil { body = try await connect() }
            guard let part = try await body?.next() else {
                try Task.checkCancellation()
                throw HalcyonError.connectionFailed("the event stream has ended")
            }
            backoff.reset()
            do { messages = try parser.consume(part)[...] } catch is ServerSentEvents.TooLarge {
                throw HalcyonError.tooLarge(limit: configuration.maximumEventBytes)
            }
            if let retry = parser.retry { backoff.base = .milliseconds(retry) }
        }

        private func connect() async throws -> AsyncThrowingStream<Data, any Error>.Iterator {
            var request = Request(path: ["events"], query: stream.filter.query, kind: .eventStream)
            request.fields = ["Accept": "text/event-stream", "Cache-Control": "no-store"]
            if !parser.lastEventID.isEmpty { request.fields["Last-Event-ID"] = parser.lastEventID }
            // The buffer always has room for one event.
            let limit = configuration.maximumEventBytes + (256 << 10)
            let response = try await stream.transport.open(request, bufferLimit: limit)
            let type = response.header("Content-Type") ?? "nothing"
            guard type.lowercased().hasPrefix("text/event-stream") else {
                throw HalcyonError.invalidResponse("expected an event stream, got \(type)")
            }
            return response.body.makeAsyncIterator()
        }

        /// The pause before the next connection. An incomplete event is discarded, because it will be sent again.
        /// - Throws: The error, if it is not transient.
        private mutating func pause(after error: any Error) throws -> Duration {
            body = nil
            parser = ServerSentEvents(lastEventID: parser.lastEventID, limit: configuration.maximumEventBytes)
            // The reader has caught up with the buffer and can go on.
            if error is HTTPExchange.BufferOverflow { return .zero }
            let error = RetryingTransport.clientError(error, limit: 0)
            guard let error = error as? HalcyonError, error.isTransient else { throw error }
            return backoff.next(atLeast: error.retryAfter ?? .zero)
        }

        private static func element(_ message: ServerSentEvents.Message) throws -> Element {
            let data = Data(message.data.utf8)
            if message.name == "gap" {
                struct Gap: Decodable { let reason: String }
                // Without it the text itself says why.
                let reason = (try? JSONDecoder().decode(Gap.self, from: data))?.reason
                return Element(content: .gap(reason ?? message.data), cursor: message.id)
            }
            do {
                let event = try JSONDecoder().decode(ImageEvent.self, from: data)
                return Element(content: .event(event), cursor: message.id)
            } catch {
                throw HalcyonError.invalidResponse("malformed event: \(message.data.prefix(200))")
            }
        }
    }
}

extension HalcyonClient {
    /// Follows the events of the cluster. The key needs the scope `read`.
    ///
    /// The stream has started when this returns: later events are not missed, even if it is read later.
    /// - Parameters:
    ///   - filter: The events of the stream.
    ///   - cursor: An ``EventStream/Element/cursor`` after which the stream starts; nil to start now.
    /// - Throws: `HalcyonError`; `CancellationError`.
    public func events(
        _ filter: EventStream.Filter = EventStream.Filter(), after cursor: String? = nil
    ) async throws -> EventStream {
        if let cursor { return EventStream(transport: transport, filter: filter, cursor: cursor) }
        var iterator = EventStream(transport: transport, filter: filter, cursor: "").makeAsyncIterator()
        return EventStream(transport: transport, filter: filter, cursor: try await iterator.start())
    }
}

/// A parser for event streams (HTML Living Standard, 9.2.6): bytes in, messages out.
struct ServerSentEvents {
    /// An event of the stream.
    struct Message: Equatable {
        /// The event's name, or `message` if it has none.
        var name = "message"
        var data = ""
        /// The position after the event.
        var id = ""
    }

    /// The event is larger than the limit.
    struct TooLarge: Error {}

    /// The id of the last complete event, after which the stream can be resumed.
    private(set) var lastEventID: String
    /// The pause before a reconnection in milliseconds, if the stream has set it.
    private(set) var retry: Int?

    private let limit: Int
    private var line: [UInt8] = []
    private var skipsLineFeed = false
    private var current = Message()
    private var hasData = false
    private var id: String

    /// - Parameters:
    ///   - lastEventID: The position after which the stream is resumed; empty for a new stream.
    ///   - limit: The maximum size of an event, in bytes.
    init(lastEventID: String = "", limit: Int) {
        (self.lastEventID, id, self.limit) = (lastEventID, lastEventID, limit)
    }

    /// The messages that these bytes complete.
    mutating func consume(_ bytes: some Sequence<UInt8>) throws -> [Message] {
        var messages: [Message] = []
        for byte in bytes {
            if byte == 10, skipsLineFeed {
                skipsLineFeed = false
                continue
            }
            skipsLineFeed = byte == 13
            guard byte == 10 || byte == 13 else {
                line.append(byte)
                if line.count + current.data.utf8.count > limit { throw TooLarge() }
                continue
            }
            if let message = endLine() { messages.append(message) }
            line.removeAll(keepingCapacity: true)
        }
        return messages
    }

    /// Processes the line.
    /// - Returns: The message, if the line ends one.
    private mutating func endLine() -> Message? {
        guard !line.isEmpty else {
            defer { (current, hasData) = (Message(), false) }
            lastEventID = id
            current.id = id
            return hasData ? current : nil
        }
        let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        var value = parts.count == 2 ? parts[1] : []
        if value.first == UInt8(ascii: " ") { value.removeFirst() }
        let text = String(decoding: value, as: UTF8.self)
        switch String(decoding: parts[0], as: UTF8.self) {
        case "event": current.name = text.isEmpty ? "message" : text
        case "data":
            current.data += (hasData ? "\n" : "") + text
            hasData = true
        case "id": if !value.contains(0) { id = text }
        case "retry":
            if text.utf8.count <= 9, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let time = Int(text) {
                retry = time
            }
        default: break
        }
        return nil
    }
}
