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
