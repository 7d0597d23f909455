import Foundation

/// What to load.
public struct ImageSource: Sendable, Equatable, Encodable, ExpressibleByStringLiteral {
    let json: JSONValue

    /// A URL as a text (`https:`, `http:`, `file:`, `s3:`, `data:`), or `initials:JD`.
    public init(_ text: String) { json = .string(text) }
    /// A URL.
    public init(_ url: URL) { self.init(url.absoluteString) }
    /// A text, as a literal.
    public init(stringLiteral value: String) { self.init(value) }

    private init(_ members: [String: JSONValue?]) { json = .object(members.compactMapValues { $0 }) }

    /// The image itself; it is known by its SHA-256, or by the key that is given.
    public static func bytes(_ data: Data, cacheKey: String? = nil) -> ImageSource {
        ImageSource(["base64": .string(data.base64EncodedString()), "cacheKey": cacheKey.map(JSONValue.string)])
    }

    /// Initials to draw, in CSS colours, or in Halcyon's choice of them.
    public static func initials(
        _ letters: String, background: String? = nil, foreground: String? = nil
    ) -> ImageSource {
        ImageSource([
            "initials": .string(letters), "background": background.map(JSONValue.string),
            "foreground": foreground.map(JSONValue.string),
        ])
    }

    /// A frame of a video, so many seconds from its beginning.
    public static func video(_ source: ImageSource, seconds: Double = 0) -> ImageSource {
        ImageSource(["video": source.json, "seconds": .number(seconds)])
    }

    /// As a job has it.
    public func encode(to encoder: any Encoder) throws { try json.encode(to: encoder) }
}
