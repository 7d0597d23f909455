/// An HTTP endpoint that receives the terminal event of a job: a name configured by the operator, or a URL.
public enum Webhook: Hashable, Sendable {
    /// A webhook configured by the operator.
    case name(String)
    /// A URL given by the job.
    case url(WebURL)

    /// The maximum length of a name, in characters.
    public static let longestName = 64

    /// Parses a name or a URL. A text with a colon is a URL.
    /// - Throws: ``JobError`` `invalid_job` if the text is neither.
    public init(_ text: String) throws(JobError) {
        if Self.isName(text) {
            self = .name(text)
            return
        }
        guard text.utf8.contains(UInt8(ascii: ":")) else {
            throw JobError(
                .invalidJob,
                "expected an http or https URL, or a name of 1 to \(Self.longestName) letters, digits, dots, "
                    + "hyphens and underscores")
        }
        let url = try WebURL(secret: text)
        guard !url.hasUser else {
            throw JobError(.invalidJob, "a webhook URL must not contain a user or password; requests are signed")
        }
        self = .url(url)
    }

    /// Returns true if the text is a valid name: 1 to 64 of A to Z, a to z, 0 to 9, dot, hyphen and underscore.
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

    /// The name or URL as given in the job.
    public var text: String {
        switch self {
        case .name(let name): name
        case .url(let url): url.text
        }
    }
}
