import Foundation

extension ImageJob {
    /// The image that a job loads.
    public struct Source: RawRepresentable, Sendable, Hashable, Codable, ExpressibleByStringLiteral {
        /// The value in the job's JSON.
        public let rawValue: JSONValue
        /// Creates a source that has no initializer or static member here.
        public init(rawValue: JSONValue) { self.rawValue = rawValue }

        /// Creates a source from a URL (`https:`, `http:`, `file:`, `s3:`, `data:`) or from `initials:JD`.
        public init(_ text: String) { rawValue = .string(text) }
        /// Creates a source from a URL.
        public init(_ url: URL) { self.init(url.absoluteString) }
        /// Creates a source from a URL or from `initials:JD`.
        public init(stringLiteral value: String) { self.init(value) }

        /// An image at a URL that may change, such as a presigned URL. URLs with the same `cacheKey` lead to the same
        /// image.
        public static func url(_ url: URL, cacheKey: String) -> Self {
            Self(["url": .string(url.absoluteString), "cacheKey": .string(cacheKey)])
        }

        /// An image sent with the job. It is identified by its SHA-256, or by `cacheKey`.
        public static func bytes(_ data: Data, cacheKey: String? = nil) -> Self {
            Self([
                "base64": .string(data.base64EncodedString()), "cacheKey": cacheKey.map(JSONValue.string),
            ])
        }

        /// An avatar with initials, in CSS colors. Without colors, Halcyon chooses them by the letters.
        public static func initials(_ letters: String, background: String? = nil, foreground: String? = nil) -> Self {
            Self([
                "initials": .string(letters), "background": background.map(JSONValue.string),
                "foreground": foreground.map(JSONValue.string),
            ])
        }

        /// A frame of a video, a number of seconds after its start.
        public static func video(_ source: Self, seconds: Double = 0) -> Self {
            Self(["video": source.rawValue, "seconds": .number(seconds)])
        }

        private init(_ members: [String: JSONValue?]) { rawValue = JSONValue(members: members) }
    }
}
