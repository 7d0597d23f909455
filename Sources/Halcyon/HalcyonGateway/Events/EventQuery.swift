import HTTPServer
import HalcyonCoding
import HalcyonModel

/// The parameters of a request for the event stream.
struct EventQuery: Hashable, Sendable {
    var filter = EventFilter()
    /// True if events are named by their type, for `addEventListener`. Otherwise all events are messages.
    var isNamed = false
    /// The position to resume at; nil to start with new events.
    var cursor: TopicCursor?

    /// - Throws: ``Problem`` if a parameter is unknown or has an invalid value.
    init(_ request: HTTPServer.Request) throws(Problem) {
        try self.init(query: request.query, lastEventID: request.headers.first("Last-Event-ID"))
    }

    /// - Parameter lastEventID: the value of the header. It takes precedence over the query, because a reconnecting
    ///   client sends the same URL again.
    init(query: [HTTPServer.QueryItem], lastEventID: String?) throws(Problem) {
        var lastEventID = lastEventID ?? ""
        for item in query {
            switch item.name {
            case "type":
                for type in try Self.text(item).split(separator: ",") {
                    filter.types.insert(try Self.type(String(type)))
                }
            case "batch": filter.batches.insert(Array(try Self.text(item).utf8))
            case "job": filter.jobs.insert(Array(try Self.text(item).utf8))
            case "source": filter.sources.insert(Array(try Self.text(item).withoutCredentials.utf8))
            case "named":
                guard let isNamed = Bool(item.value) else {
                    throw Problem(.badRequest, "named must be true or false, not “\(item.value)”")
                }
                self.isNamed = isNamed
            case "lastEventId": if lastEventID.isEmpty { lastEventID = item.value }
            // The parameters of a signed URL, which the authenticator has checked.
            case "signature", "keyId", "expires": continue
            default:
                throw Problem(
                    .badRequest,
                    "unknown parameter “\(item.name)”; expected type, job, batch, source, named or lastEventId")
            }
        }
        if lastEventID.isEmpty { return }
        guard let cursor = TopicCursor(lastEventID) else {
            throw Problem(
                .badRequest, "invalid Last-Event-ID; omit it to receive only new events")
        }
        self.cursor = cursor
    }

    private static func text(_ item: HTTPServer.QueryItem) throws(Problem) -> String {
        if item.value.isEmpty { throw Problem(.badRequest, "the parameter \(item.name) is empty") }
        return item.value
    }

    private static func type(_ word: String) throws(Problem) -> String {
        guard let type = EventAttributes.type(named: word) else {
            let names = EventAttributes.typeNames.joined(separator: ", ")
            throw Problem(.badRequest, "unknown event type “\(word)”; expected \(names)")
        }
        return type
    }
}

/// A filter of events. Each attribute that is set must match one of its values. A pure value.
struct EventFilter: Hashable, Sendable {
    /// CloudEvents types.
    var types: Set<String> = []
    /// Job ids as bytes, because Swift strings compare by canonical equivalence.
    var jobs: Set<[UInt8]> = []
    /// Ids of batches as bytes. Events of the jobs of a batch match, too.
    var batches: Set<[UInt8]> = []
    /// Sources as bytes, as they are written in events.
    var sources: Set<[UInt8]> = []

    /// True if the event passes the filter. Without a filter, events are not parsed.
    func lets(_ record: BroadcastEvent) -> Bool {
        if self == EventFilter() { return true }
        guard let event = record.attributes else { return false }
        func isIn(_ wanted: Set<[UInt8]>, _ text: String?) -> Bool {
            wanted.isEmpty || text.map { wanted.contains(Array($0.utf8)) } == true
        }
        return (types.isEmpty || types.contains(event.type)) && isIn(jobs, event.jobID)
            && isIn(batches, event.batch) && isIn(sources, event.subject)
    }
}

/// Settings for reading events and streaming them to clients.
public struct EventOptions: Sendable {
    /// The size in bytes of the in-memory buffer of events. Clients that reconnect within its range cause no reads from
    /// Kafka. Clients that fall behind it are disconnected.
    public var ringBytes = 16 << 20
    /// The age of the events that a gateway reads when it starts, so that clients of a stopped gateway find missed
    /// events in memory.
    public var memory: Duration = .seconds(60)
    /// The figures and jobs of the recent past that a gateway keeps.
    public var history = HistoryOptions()
    /// The interval of checks for new partitions of the events topic.
    public var partitionInterval: Duration = .seconds(10)
    /// The maximum number of concurrent streams.
    public var streams = 4096
    /// The maximum number of streams that concurrently read missed events from Kafka. Other streams wait.
    public var replays = 4
    /// The time without events after which a keep-alive is sent, so that proxies do not close the stream.
    public var keepAlive: Duration = .seconds(15)
    /// The time after which a client that does not read is disconnected.
    public var slowClientTimeout: Duration = .seconds(20)
    /// The time after which clients reconnect when a stream ends.
    public var retry: Duration = .seconds(2)

    /// Creates options with default values.
    public init() {}
}

extension Route {
    /// Returns the route of the event stream, `GET /v1/events`. It accepts signed URLs, because a browser's
    /// `EventSource` cannot send a key.
    static func events(_ feed: EventFeed, _ streamLimiter: StreamLimiter) -> Route {
        Route("GET", "/v1/events", for: .read, acceptsSignature: true, kind: .stream) { call in
            let query = try EventQuery(call.request)
            return try streamLimiter.stream { try await EventStream(feed: feed, query: query, writer: $0).run() }
        }
    }
}
