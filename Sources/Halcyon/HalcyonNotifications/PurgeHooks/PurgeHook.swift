import Curl
import Formats
import HalcyonModel
import HalcyonSources
import Hashing

/// An HTTP request that notifies a CDN or another shared cache of purges. One request may report several. A value.
public struct PurgeHook: Sendable {
    /// The URL. It was chosen by the operator, so that its address may be private.
    public var url: WebURL
    /// The HTTP method.
    public var method = HTTPRequest.Method.post
    /// The headers, with placeholders in their values. They may contain secrets.
    public var headers = HTTPFields()
    /// The body.
    public var body = Body.template("")
    /// The limits of a request, and the delay for which it waits for further purges.
    public var batch = Batch()
    /// The maximum number of attempts per purge; nil for that of webhooks.
    public var attempts: Int?
    /// The credentials that sign requests with AWS Signature Version 4; nil for unsigned requests.
    public var credentials: S3Options.Credentials?

    /// Creates a hook with an empty body.
    public init(_ url: WebURL) { self.url = url }

    /// The limits of a request.
    public struct Batch: Hashable, Sendable {
        /// The maximum number of tags in a request. The tags of one purge are not divided.
        public var tags = 100
        /// The maximum length of the tags with their separators, in bytes.
        public var bytes = 8 << 10
        /// The time for which a purge waits for others.
        public var linger = Duration.seconds(1)

        /// Creates the default limits.
        public init() {}
    }

    /// The body of a request.
    public enum Body: Hashable, Sendable {
        /// A text with placeholders.
        case template(String)
        /// The XML of an invalidation in Amazon CloudFront.
        case cloudFront
    }

    /// A text in braces, such as `{{tags.json}}`, that is replaced in headers and bodies.
    enum Placeholder: String, CaseIterable {
        /// A JSON array of the tags.
        case json = "tags.json"
        /// The tags with commas between them.
        case commas = "tags.commas"
        /// The tags with spaces between them.
        case spaces = "tags.spaces"
        /// The number of tags.
        case count
        /// An id that is unique to these purges.
        case id

        /// The text in templates.
        var text: String { "{{\(rawValue)}}" }
    }
}

/// A purge for a hook.
struct PurgeNotice: Hashable, Sendable {
    /// The id of the event.
    let id: String
    /// The tags of the responses that the purge makes invalid (``CacheTag``).
    let tags: [String]
}

extension PurgeHook {
    /// Returns the request for some purges, without limits on time and size.
    func request(for purges: PurgeBatch) -> HTTPRequest {
        var request = HTTPRequest(method, url.text)
        for field in headers.fields { request.headers.add(field.name, Self.filled(field.value, purges)) }
        switch body {
        case .template(let text): request.body = Array(Self.filled(text, purges).utf8)
        case .cloudFront: request.body = Array(Self.invalidation(purges).utf8)
        }
        credentials?.sign(&request, region: "us-east-1", service: "cloudfront")
        return request
    }

    /// Replaces the placeholders in a text. Tags need no escapes (``CacheTag``).
    private static func filled(_ text: String, _ purges: PurgeBatch) -> String {
        guard text.contains("{{") else { return text }
        return Placeholder.allCases.reduce(text) { text, placeholder in
            let value: String
            switch placeholder {
            case .json: value = "[\(purges.tags.map { "\"\($0)\"" }.joined(separator: ","))]"
            case .commas: value = purges.tags.joined(separator: ",")
            case .spaces: value = purges.tags.joined(separator: " ")
            case .count: value = "\(purges.tags.count)"
            case .id: value = purges.id
            }
            return text.replacing(placeholder.text, with: value)
        }
    }

    /// The body of CreateInvalidation (Amazon CloudFront API 2020-05-31). Tags are items that begin with `#`. A request
    /// with the same caller reference is not repeated by CloudFront.
    private static func invalidation(_ purges: PurgeBatch) -> String {
        let items = purges.tags.map { "<Path>#\($0)</Path>" }.joined()
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <InvalidationBatch xmlns="http://cloudfront.amazonaws.com/doc/2020-05-31/">\
            <Paths><Quantity>\(purges.tags.count)</Quantity><Items>\(items)</Items></Paths>\
            <CallerReference>\(purges.id)</CallerReference></InvalidationBatch>
            """
    }
}

/// Purges that a hook reports in one request. A value.
struct PurgeBatch: Hashable, Sendable {
    /// The tags of all purges, without duplicates.
    private(set) var tags: [String] = []
    /// The length of the tags with one separator each, in bytes.
    private var bytes = 0
    private var events: [String] = []

    /// True if it contains no purge.
    var isEmpty: Bool { events.isEmpty }

    /// The hash of the events' ids.
    var id: String { String(SHA256.hash(Array(events.joined(separator: " ").utf8)).description.prefix(32)) }

    /// Adds a purge.
    /// - Returns: False if it does not fit. The first purge always fits.
    mutating func add(_ purge: PurgeNotice, within limits: PurgeHook.Batch) -> Bool {
        var new: [String] = []
        for tag in purge.tags where !tags.contains(tag) && !new.contains(tag) { new.append(tag) }
        let length = new.reduce(0) { $0 + $1.utf8.count + 1 }
        guard isEmpty || (tags.count + new.count <= limits.tags && bytes + length <= limits.bytes) else { return false }
        tags += new
        bytes += length
        events.append(purge.id)
        return true
    }

    /// True if no purge with another tag fits.
    func isFull(_ limits: PurgeHook.Batch) -> Bool { tags.count >= limits.tags || bytes >= limits.bytes }
}
