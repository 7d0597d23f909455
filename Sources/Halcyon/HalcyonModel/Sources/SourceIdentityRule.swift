import Formats

/// A rule that omits query parameters from the identity of sources in cache keys, because they change without a change
/// of the image: signatures and expiry times of presigned URLs, or parameters for statistics. A value.
public struct SourceIdentityRule: Hashable, Sendable, CustomStringConvertible {
    /// The form of a rule, for messages.
    public static let expectation = "HOST?NAME&NAME, such as *.s3.amazonaws.com?X-Amz-*&Signature&Expires"

    /// The rule as given.
    public let description: String
    private let host: Pattern
    private let names: [Pattern]

    /// Parses a host (`img.example.org`, `*.example.org` or `*`), a question mark, and the names of parameters with `&`
    /// between them. A name may end with `*`. Names are compared without regard to case. Returns nil for another text.
    public init?(_ text: String) {
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty else { return nil }
        let names = parts[1].split(separator: "&", omittingEmptySubsequences: false)
        let isHost = parts[0].utf8.allSatisfy { PercentEncoding.isUnreserved($0) || "*:[]".utf8.contains($0) }
        guard isHost, parts[0] == "*" || !parts[0].dropFirst(parts[0].hasPrefix("*.") ? 1 : 0).contains("*"),
            names.allSatisfy({ name in
                !name.isEmpty && !name.dropLast().contains("*")
                    && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"#?=".utf8.contains($0) }
            })
        else { return nil }
        description = text
        host = parts[0] == "*" ? .all : parts[0].hasPrefix("*.") ? .suffix(parts[0].dropFirst()) : .exact(parts[0])
        self.names = names.map { $0 == "*" ? .all : $0.hasSuffix("*") ? .prefix($0.dropLast()) : .exact($0) }
    }

    /// True if the rule is for URLs with this host, which is in lower case and has no brackets.
    func applies(to host: String) -> Bool { self.host.matches(host[...]) }

    /// Returns a canonical URL without the parameters.
    func identity(of url: String) -> String {
        guard let mark = url.firstIndex(of: "?") else { return url }
        let rest = url[url.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false).filter {
            part in
            let name = part.prefix { $0 != "=" }
            return !names.contains { $0.matches(name) }
        }
        return rest.isEmpty ? String(url[..<mark]) : "\(url[...mark])\(rest.joined(separator: "&"))"
    }

    private enum Pattern: Hashable, Sendable {
        case all
        case exact(String)
        case prefix(String)
        case suffix(String)

        static func exact(_ text: Substring) -> Pattern { .exact(lowercased(Array(text.utf8)[...])) }
        static func prefix(_ text: Substring) -> Pattern { .prefix(lowercased(Array(text.utf8)[...])) }
        static func suffix(_ text: Substring) -> Pattern { .suffix(lowercased(Array(text.utf8)[...])) }

        func matches(_ text: Substring) -> Bool {
            let text = lowercased(Array(text.utf8)[...])
            return switch self {
            case .all: true
            case .exact(let name): text == name
            case .prefix(let start): text.hasPrefix(start)
            case .suffix(let end): text.hasSuffix(end)
            }
        }
    }
}
