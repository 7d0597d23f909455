import HTTPServer
import HalcyonModel
import HalcyonWire

/// What a client asks of the event stream.
struct EventQuery: Hashable, Sendable {
    var filter = EventFilter()
    /// Whether events are named by their type, for `addEventListener`; else all of them are messages.
    var isNamed = false
    /// Where it goes on; nil for from now on.
    var cursor: TopicCursor?

    /// - Throws: ``Problem`` for what is not known, or is no value of its parameter.
    init(_ request: HTTPServer.Request) throws(Problem) {
        try self.init(query: request.query, lastEventID: request.headers.first("Last-Event-ID"))
    }

    /// - Parameter lastEventID: the header. It counts before the query, for whoever comes back asks for the same URL.
    init(query: [HTTPServer.QueryItem], lastEventID: String?) throws(Problem) {
        var lastEventID = lastEventID ?? ""
        for item in query {
            switch item.name {
            case "type":
                for type in try Self.text(item).split(separator: ",") {
                    filter.types.insert(try Self.type(String(type)))
                }
            case "job": filter.jobs.insert(Array(try Self.text(item).utf8))
            case "source": filter.sources.insert(Array(try Self.text(item).withoutCredentials.utf8))
            case "named":
                guard let isNamed = Bool(item.value) else {
                    throw Problem(.badRequest, "named is true or false, not “\(item.value)”")
                }
                self.isNamed = isNamed
            case "lastEventId": if lastEventID.isEmpty { lastEventID = item.value }
            // Of a signed URL, which the gatekeeper has looked at.
            case "signature", "keyId", "expires": continue
            default:
                throw Problem(
                    .badRequest,
                    "the event stream knows no parameter “\(item.name)”, only type, job, source, named and lastEventId")
            }
        }
        if lastEventID.isEmpty { return }
        guard let cursor = TopicCursor(lastEventID) else {
            throw Problem(
                .badRequest, "this Last-Event-ID was never sent; leave it out to follow from now on")
        }
        self.cursor = cursor
    }

    private static func text(_ item: HTTPServer.QueryItem) throws(Problem) -> String {
        if item.value.isEmpty { throw Problem(.badRequest, "\(item.name) is empty") }
        return item.value
    }

    private static func type(_ word: String) throws(Problem) -> String {
        let name = word.hasPrefix(Event.typePrefix) ? String(word.dropFirst(Event.typePrefix.count)) : word
        guard let kind = Event.Kind(rawValue: name) else {
            let kinds = Event.Kind.allCases.map(\.rawValue).joined(separator: ", ")
            throw Problem(.badRequest, "there is no type of events “\(word)”, only \(kinds)")
        }
        return kind.rawValue
    }
}

/// Which events a stream is to have: of each member that is named one of its values, and all of the members. A pure value.
struct EventFilter: Hashable, Sendable {
    /// Behind the prefix `halcyon.image.`.
    var types: Set<String> = []
    /// The bytes of ids of jobs: equal strings of Swift may be different ids.
    var jobs: Set<[UInt8]> = []
    /// The bytes of sources, as events have them.
    var sources: Set<[UInt8]> = []

    /// Whether a stream has it. Without a filter nothing is parsed.
    func lets(_ record: FeedRecord) -> Bool {
        if types.isEmpty && jobs.isEmpty && sources.isEmpty { return true }
        guard let facts = record.facts else { return false }
        return (types.isEmpty || types.contains(facts.type))
            && (jobs.isEmpty || facts.jobID.map { jobs.contains(Array($0.utf8)) } == true)
            && (sources.isEmpty || facts.subject.map { sources.contains(Array($0.utf8)) } == true)
    }
}

/// How a gateway follows events and hands them on.
public struct EventOptions: Sendable {
    /// Bytes of the newest events that are kept in memory: who comes back within what they reach costs Kafka nothing, and who falls behind
    /// them is dropped.
    public var ringBytes = 16 << 20
    /// How far back a gateway reads when it starts, so that clients of one that has gone find in memory what they have missed.
    public var memory: Duration = .seconds(60)
    /// How often is looked whether the topic has more partitions than before.
    public var partitionInterval: Duration = .seconds(10)
    /// Streams at once.
    public var streams = 4096
    /// Streams at once that are read what they have missed from Kafka; others wait for their turn.
    public var replays = 4
    /// After how long without an event a stream is sent a sign of life, so that proxies keep it.
    public var keepAlive: Duration = .seconds(15)
    /// How long a client may leave what was sent to it unread; it is dropped then.
    public var patience: Duration = .seconds(20)
    /// After how long a client whose stream has ended is to come back.
    public var retry: Duration = .seconds(2)

    /// The defaults.
    public init() {}
}

extension Route {
    /// `GET /v1/events`: the event stream. By a signed URL as well, since a browser's `EventSource` sends no key.
    static func events(_ feed: EventFeed, _ places: StreamPlaces) -> Route {
        Route("GET", "/v1/events", for: .read, acceptsSignature: true, kind: .stream) { call in
            let query = try EventQuery(call.request)
            return try places.stream { try await EventStream(feed: feed, query: query, writer: $0).run() }
        }
    }
}
