/// Where the end of a job is told besides its topic, by HTTP: a name that the operator has given an address, or a URL.
public enum Webhook: Hashable, Sendable {
    /// One of the operator's.
    case name(String)
    /// One of the job's own.
    case url(WebURL)

    /// Characters of the longest name.
    public static let longestName = 64

    /// From its text: what has a colon is a URL.
    /// - Throws: ``Failure`` `invalid_job` for what is neither.
    public init(_ text: String) throws(Failure) {
        if Self.isName(text) {
            self = .name(text)
            return
        }
        guard text.utf8.contains(UInt8(ascii: ":")) else {
            throw Failure(
                .invalidJob,
                "expected an http or https URL, or a name of 1 to \(Self.longestName) letters, digits, dots, hyphens and underscores"
            )
        }
        let url = try WebURL(secret: text)
        guard !url.hasUser else {
            throw Failure(.invalidJob, "a webhook's URL has no user and no password: what is sent is signed")
        }
        self = .url(url)
    }

    /// Whether a text can be a name: 1 to 64 of A to Z, a to z, 0 to 9, dot, hyphen and underscore.
    public static func isName(_ text: String) -> Bool {
        (1...longestName).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// As the job gave it.
    public var text: String {
        switch self {
        case .name(let name): name
        case .url(let url): url.text
        }
    }
}
