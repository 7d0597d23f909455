import HTTPServer
import HalcyonCluster
import JSON

/// The dead letters that a client requests, and their maximum number.
struct DeadLetterRequest: Sendable {
    /// The default number of dead letters in a page.
    private static let page = 100

    private(set) var query = DeadLetterQuery()
    private(set) var limit: Int
    /// The offsets at which reading starts.
    private(set) var cursor = TopicCursor()
    /// True if the response only reports what would be replayed or discarded.
    private(set) var isDry = false

    /// Parses the query of a page: filters by name, `replayed`, `limit` and `cursor`.
    /// - Throws: ``Problem`` if a parameter is unknown or has an invalid value.
    init(query items: [HTTPServer.QueryItem], most: Int) throws(Problem) {
        limit = min(Self.page, most)
        var filters: [DeadLetterFilter] = []
        var withReplayed = false
        for item in items {
            switch item.name {
            case "limit":
                guard let limit = Int(item.value) else { throw Self.wrongLimit(most) }
                try read(limit: Int64(limit), most)
            case "cursor": try read(cursor: item.value)
            case "replayed":
                guard let value = Bool(item.value) else {
                    throw Problem(.badRequest, "replayed must be true or false, not “\(item.value)”")
                }
                withReplayed = value
            default: filters.append(try Self.filter(item.name, item.value))
            }
        }
        query = DeadLetterQuery(filters, withReplayed: withReplayed)
    }

    /// Parses the body of a request to replay or discard: `letters` or `filter`, and optionally `limit`, `cursor` and
    /// `dryRun`.
    /// - Throws: ``Problem`` for an unknown member, so that a misspelled filter does not select more than intended.
    init(replay body: [UInt8], most: Int) throws(Problem) {
        limit = min(Self.page, most)
        var problem: Problem?
        var targets: [DeadLetterQuery] = []
        do throws(JSONError) {
            try JSON.parse(body, maximumSize: body.count).forEachMember { name, value throws(JSONError) in
                do throws(Problem) {
                    switch "\(name)" {
                    case "letters": targets.append(DeadLetterQuery(letters: try Self.letters(value, most)))
                    case "filter": targets.append(DeadLetterQuery(try Self.filters(value)))
                    case "limit": try read(limit: value.asInteger ?? 0, most)
                    case "cursor": try read(cursor: value.asString ?? "")
                    case "dryRun":
                        guard let isDry = value.asBool else {
                            throw Problem(.badRequest, "dryRun must be true or false")
                        }
                        self.isDry = isDry
                    default:
                        throw Problem(
                            .badRequest,
                            "unknown member “\(name)”; expected letters or filter, limit, cursor and dryRun")
                    }
                } catch {
                    problem = problem ?? error
                }
            }
        } catch {
            throw Problem(.badRequest, "invalid request: \(error)")
        }
        if let problem { throw problem }
        guard targets.count == 1 else {
            throw Problem(.badRequest, "expected either letters or filter; an empty filter selects all")
        }
        query = targets[0]
        // All dead letters that are named are requested.
        if let letters = query.letters { limit = letters.count }
    }

    private mutating func read(limit: Int64, _ most: Int) throws(Problem) {
        guard (1...Int64(most)).contains(limit) else { throw Self.wrongLimit(most) }
        self.limit = Int(limit)
    }

    private mutating func read(cursor: String) throws(Problem) {
        guard let cursor = TopicCursor(cursor) else {
            throw Problem(.badRequest, "invalid cursor; omit it to start with the oldest dead letter")
        }
        self.cursor = cursor
    }

    private static func wrongLimit(_ most: Int) -> Problem {
        Problem(.badRequest, "limit must be a number from 1 to \(most)")
    }

    private static func letters(_ value: JSONElement, _ most: Int) throws(Problem) -> Set<DeadLetterID> {
        let letters = try texts(value).map { text in (text, DeadLetterID(text)) }
        if let wrong = letters.first(where: { $0.1 == nil }) {
            throw Problem(.badRequest, "invalid letter “\(wrong.0)”; expected PARTITION-OFFSET, such as 0-1042")
        }
        guard (1...most).contains(letters.count) else {
            throw Problem(.badRequest, "letters must have 1 to \(most) names, such as 0-1042")
        }
        return Set(letters.compactMap(\.1))
    }

    private static func filters(_ value: JSONElement) throws(Problem) -> [DeadLetterFilter] {
        var filters: [DeadLetterFilter] = []
        var problem: Problem?
        do throws(JSONError) {
            try value.forEachMember { name, value throws(JSONError) in
                do throws(Problem) {
                    for text in try texts(value) { filters.append(try filter("\(name)", text)) }
                } catch {
                    problem = problem ?? error
                }
            }
        } catch {
            throw Problem(.badRequest, "invalid filter: \(error)")
        }
        if let problem { throw problem }
        return filters
    }

    /// Returns the value of a string or of an array of strings.
    private static func texts(_ value: JSONElement) throws(Problem) -> [String] {
        if let text = value.asString { return [text] }
        var texts: [String] = []
        do throws(JSONError) {
            try value.forEachElement { element throws(JSONError) in texts.append(try element.string()) }
        } catch {
            throw Problem(.badRequest, "expected a string or an array of strings: \(error)")
        }
        return texts
    }

    private static func filter(_ name: String, _ value: String) throws(Problem) -> DeadLetterFilter {
        guard let known = DeadLetterFilter.Name(rawValue: name) else {
            throw Problem(.badRequest, "unknown filter “\(name)”; expected \(DeadLetterFilter.names)")
        }
        guard let filter = DeadLetterFilter(known, value) else {
            throw Problem(.badRequest, "invalid value of the filter \(name): \(value)")
        }
        return filter
    }
}
