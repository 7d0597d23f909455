/// What tells one making of a result from the next (RFC 9110, 8.8.3). A pure value.
struct EntityTag: Hashable, CustomStringConvertible {
    /// What stands between the quotes.
    let value: String

    /// As a header has it.
    var description: String { "\"\(value)\"" }

    /// Whether `If-None-Match` names it, so that the client has it already (RFC 9110, 13.1.2: weak comparison).
    func isNamed(by header: String?) -> Bool {
        guard let header else { return false }
        if header.trimmed == "*" { return true }
        return Self.tags(in: header).contains(value)
    }

    /// Whether `If-Range` lets a part be sent (RFC 9110, 13.1.5: strong comparison, so no weak tag and no date).
    func allowsRange(_ header: String?) -> Bool {
        guard let header else { return true }
        return header.trimmed == description
    }

    /// What stands between the quotes of a list of tags. A comma may stand there as well.
    private static func tags(in list: String) -> [String] {
        var (tags, rest) = ([String](), list[...])
        while let open = rest.firstIndex(of: "\"") {
            let inside = rest[rest.index(after: open)...]
            guard let close = inside.firstIndex(of: "\"") else { break }
            tags.append(String(inside[..<close]))
            rest = inside[inside.index(after: close)...]
        }
        return tags
    }
}

extension String {
    fileprivate var trimmed: Substring {
        self.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed().reduce(into: "") {
            $0.append($1)
        }[...]
    }
}
