import HTTPServer
import HalcyonCluster
import JSON

/// Which letters a client asks for, and how many at once.
struct LetterRequest: Sendable {
    /// A number of letters unless one is given.
    private static let page = 100

    private(set) var query = LetterQuery()
    private(set) var limit: Int
    /// Where to begin.
    private(set) var cursor = TopicCursor()
    /// Only says what would be done.
    private(set) var isDry = false

    /// A page: filters by their names, `replayed`, `limit` and `cursor`.
    /// - Throws: ``Problem`` for what is not known, or is no value of its parameter.
    init(query items: [HTTPServer.QueryItem], most: Int) throws(Problem) {
        limit = min(Self.page, most)
        var filters: [LetterFilter] = []
        var withReplayed = false
        for item in items {
            switch item.name {
            case "limit":
                guard let limit = Int(item.value) else { throw Self.wrongLimit(most) }
                try take(limit: Int64(limit), most)
            case "cursor": try take(cursor: item.value)
            case "replayed":
                guard let value = Bool(item.value) else {
                    throw Problem(.badRequest, "replayed is true or false, not “\(item.value)”")
                }
                withReplayed = value
            default: filters.append(try Self.filter(item.name, item.value))
            }
        }
        query = LetterQuery(filters, withReplayed: withReplayed)
    }

    /// What is to be replayed: `letters` or `filter`, and perhaps `limit`, `cursor` and `dryRun`.
    /// - Throws: ``Problem`` for anything else: what is misspelt must not replay more than is meant.
    init(replay body: [UInt8], most: Int) throws(Problem) {
        limit = min(Self.page, most)
        var problem: Problem?
        var targets: [LetterQuery] = []
        do throws(JSONError) {
            try JSON.parse(body, maximumSize: body.count).forEachMember { name, value throws(JSONError) in
                do throws(Problem) {
                    switch "\(name)" {
                    case "letters": targets.append(LetterQuery(letters: try Self.letters(value, most)))
                    case "filter": targets.append(LetterQuery(try Self.filters(value)))
                    case "limit": try take(limit: value.asInteger ?? 0, most)
                    case "cursor": try take(cursor: value.asString ?? "")
                    case "dryRun":
                        guard let isDry = value.asBool else {
                            throw Problem(.badRequest, "dryRun is true or false")
                        }
                        self.isDry = isDry
                    default:
                        throw Problem(
                            .badRequest, "a replay has no “\(name)”, only letters or filter, limit, cursor and dryRun")
                    }
                } catch {
                    problem = problem ?? error
                }
            }
        } catch {
            throw Problem(.badRequest, "the replay: \(error)")
        }
        if let problem { throw problem }
        guard targets.count == 1 else {
            throw Problem(.badRequest, "expected one of letters and filter; an empty filter is for all")
        }
        query = targets[0]
        // Letters that are named are all meant.
        if let letters = query.letters { limit = letters.count }
    }

    private mutating func take(limit: Int64, _ most: Int) throws(Problem) {
        guard (1...Int64(most)).contains(limit) else { throw Self.wrongLimit(most) }
        self.limit = Int(limit)
    }

    private mutating func take(cursor: String) throws(Problem) {
        guard let cursor = TopicCursor(cursor) else {
            throw Problem(.badRequest, "this cursor was never given; leave it out to begin with the oldest letter")
        }
        self.cursor = cursor
    }

    private static func wrongLimit(_ most: Int) -> Problem {
        Problem(.badRequest, "limit is a number from 1 to \(most)")
    }

    private static func letters(_ value: JSONElement, _ most: Int) throws(Problem) -> Set<LetterID> {
        let letters = try texts(value).map { text in (text, LetterID(text)) }
        if let wrong = letters.first(where: { $0.1 == nil }) {
            throw Problem(.badRequest, "“\(wrong.0)” is no letter: they are named PARTITION-OFFSET, such as 0-1042")
        }
        guard (1...most).contains(letters.count) else {
            throw Problem(.badRequest, "letters are from 1 to \(most) names such as 0-1042")
        }
        return Set(letters.compactMap(\.1))
    }

    private static func filters(_ value: JSONElement) throws(Problem) -> [LetterFilter] {
        var filters: [LetterFilter] = []
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
            throw Problem(.badRequest, "the filter: \(error)")
        }
        if let problem { throw problem }
        return filters
    }

    /// One or several.
    private static func texts(_ value: JSONElement) throws(Problem) -> [String] {
        if let text = value.asString { return [text] }
        var texts: [String] = []
        do throws(JSONError) {
            try value.forEachElement { element throws(JSONError) in texts.append(try element.string()) }
        } catch {
            throw Problem(.badRequest, "expected a text, or several in a list: \(error)")
        }
        return texts
    }

    private static func filter(_ name: String, _ value: String) throws(Problem) -> LetterFilter {
        guard let known = LetterFilter.Name(rawValue: name) else {
            throw Problem(.badRequest, "letters have no “\(name)”, only \(LetterFilter.names)")
        }
        guard let filter = LetterFilter(known, value) else {
            throw Problem(.badRequest, "no letter can have \(name)=\(value)")
        }
        return filter
    }
}
