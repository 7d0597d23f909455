import Curl
import Formats
import HalcyonModel
import HalcyonSources
import JSON

/// A definition of a hook that is invalid. The description names the member, and contains no value, because it may be
/// a secret.
public struct PurgeHookError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason.
    public let description: String

    init(_ description: String) { self.description = description }
}

extension PurgeHook {
    /// The shared caches for which the requests are known.
    public enum Template: String, CaseIterable, Sendable {
        case cloudflare, fastly, cloudfront, varnish
    }

    /// The maximum size of a definition, in bytes.
    public static let longestDefinition = 64 << 10

    /// Parses the JSON object that defines a hook: with `template` the parameters of a known cache, otherwise a `url`
    /// and optionally `method`, `headers` and `body`; in both cases optionally `batch`, `batchBytes`, `linger` and
    /// `attempts`.
    /// - Throws: ``PurgeHookError``.
    public init(definition text: String) throws(PurgeHookError) {
        var members: Members
        do throws(JSONError) {
            let root = try JSON.parse(Array(text.utf8), maximumSize: Self.longestDefinition)
            members = Members(root)
            // Fails if it is not an object.
            try root.forEachMember { name, _ in members.unused.append(name.description) }
        } catch {
            throw PurgeHookError(
                "expected a JSON object such as {\"template\": \"fastly\", \"service\": \"…\", \"token\": \"…\"}")
        }
        if let name = try members.text("template") {
            guard let template = Template(rawValue: name) else {
                let names = Template.allCases.map(\.rawValue).joined(separator: ", ")
                throw PurgeHookError("template: expected one of \(names)")
            }
            try self.init(template, &members)
        } else {
            try self.init(custom: &members)
        }
        batch.tags = try members.number("batch", in: 2...3000) ?? batch.tags
        batch.bytes = try members.number("batchBytes", in: 512...(1 << 20)) ?? batch.bytes
        attempts = try members.number("attempts", in: 1...1000)
        if let text = try members.text("linger") {
            let kind = ValueKind<Duration>.duration(in: .zero ... .seconds(60))
            guard let linger = kind.value(of: text) else {
                throw PurgeHookError("linger: expected \(kind.expectation)")
            }
            batch.linger = linger
        }
        if let unknown = members.unused.first {
            throw PurgeHookError("unknown member \(unknown); remove it, or see docs/guides/cdn.md")
        }
    }

    private init(custom members: inout Members) throws(PurgeHookError) {
        guard let url = try members.url() else { throw PurgeHookError("needs a url or a template") }
        self.init(url)
        if let name = try members.text("method") {
            let methods: [HTTPRequest.Method] = [.post, .put, .get, .delete, .purge, .ban]
            guard let method = methods.first(where: { $0.rawValue == name }) else {
                let names = methods.map(\.rawValue).joined(separator: ", ")
                throw PurgeHookError("method: expected one of \(names)")
            }
            self.method = method
        }
        headers = try members.headers()
        if let text = try members.text("body") {
            guard method == .post || method == .put else {
                throw PurgeHookError("body: requests with \(method.rawValue) have none; remove it, or use POST or PUT")
            }
            try Self.checkPlaceholders(text, "body")
            body = .template(text)
        }
    }

    private init(_ template: Template, _ members: inout Members) throws(PurgeHookError) {
        let base = try members.url()
        switch template {
        case .cloudflare:
            let zone = try members.required("zone")
            self.init(try Self.endpoint(base, "https://api.cloudflare.com", "/client/v4/zones/\(zone)/purge_cache"))
            headers = ["Authorization": "Bearer \(try members.required("token"))", "Content-Type": "application/json"]
            body = .template("{\"tags\":\(Placeholder.json.text)}")
        case .fastly:
            let service = try members.required("service")
            self.init(try Self.endpoint(base, "https://api.fastly.com", "/service/\(service)/purge"))
            headers = ["Fastly-Key": try members.required("token"), "Content-Type": "application/json"]
            headers["Accept"] = "application/json"
            if try members.flag("soft") { headers["Fastly-Soft-Purge"] = "1" }
            body = .template("{\"surrogate_keys\":\(Placeholder.json.text)}")
            batch.tags = 256
        case .cloudfront:
            let path = "/2020-05-31/distribution/\(try members.required("distribution"))/invalidation"
            self.init(try Self.endpoint(base, "https://cloudfront.amazonaws.com", path))
            headers = ["Content-Type": "application/xml"]
            body = .cloudFront
            credentials = S3Options.Credentials(
                accessKey: try members.required("accessKey"), secretKey: try members.required("secretKey"),
                sessionToken: try members.text("sessionToken"))
        case .varnish:
            guard let base else { throw PurgeHookError("url: is missing; it names the Varnish server") }
            self.init(base)
            method = .purge
            headers[try members.flag("soft") ? "xkey-softpurge" : "xkey-purge"] = Placeholder.spaces.text
            for field in try members.headers().fields { headers[field.name] = field.value }
            // Varnish accepts header lines of up to 8 KiB (http_req_hdr_len).
            batch.bytes = 6 << 10
        }
    }

    /// Returns the URL of an API, or of a server in place of it.
    private static func endpoint(_ base: WebURL?, _ api: String, _ path: String) throws(PurgeHookError) -> WebURL {
        var text = base?.text ?? api
        while text.utf8.last == UInt8(ascii: "/") { text.removeLast() }
        guard let url = try? WebURL(secret: text + path) else {
            throw PurgeHookError("the parameters do not result in a valid URL")
        }
        return url
    }

    /// - Throws: ``PurgeHookError`` for a placeholder that does not exist.
    fileprivate static func checkPlaceholders(_ text: String, _ name: String) throws(PurgeHookError) {
        let rest = Placeholder.allCases.reduce(text) { $0.replacing($1.text, with: "") }
        guard !rest.contains("{{") else {
            let names = Placeholder.allCases.map(\.text).joined(separator: ", ")
            throw PurgeHookError("\(name): unknown placeholder; expected \(names)")
        }
    }

    /// The members of a definition.
    private struct Members {
        private let root: JSONElement
        /// The names of members that were not read.
        var unused: [String] = []

        init(_ root: JSONElement) { self.root = root }

        private mutating func take(_ name: String) -> JSONElement? {
            unused.removeAll { $0 == name }
            return root.member(name)
        }

        mutating func text(_ name: String) throws(PurgeHookError) -> String? {
            guard let member = take(name) else { return nil }
            guard let text = member.asString else { throw PurgeHookError("\(name): expected a text") }
            return text
        }

        /// Reads an identifier or a secret.
        mutating func required(_ name: String) throws(PurgeHookError) -> String {
            guard let text = try text(name) else { throw PurgeHookError("\(name): is missing") }
            guard !text.isEmpty, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }), !text.contains("{{") else {
                throw PurgeHookError("\(name): expected visible ASCII characters")
            }
            return text
        }

        mutating func flag(_ name: String) throws(PurgeHookError) -> Bool {
            guard let member = take(name) else { return false }
            guard let flag = member.asBool else { throw PurgeHookError("\(name): expected true or false") }
            return flag
        }

        mutating func number(_ name: String, in range: ClosedRange<Int>) throws(PurgeHookError) -> Int? {
            guard let member = take(name) else { return nil }
            guard let number = member.asInteger.map({ Int($0) }), range.contains(number) else {
                throw PurgeHookError(
                    "\(name): expected a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }

        mutating func url() throws(PurgeHookError) -> WebURL? {
            guard let text = try text("url") else { return nil }
            guard let url = try? WebURL(secret: text), !url.hasUser else {
                throw PurgeHookError("url: expected an http or https URL without a user; use headers for credentials")
            }
            return url
        }

        mutating func headers() throws(PurgeHookError) -> HTTPFields {
            guard let member = take("headers") else { return [:] }
            var fields = HTTPFields()
            do throws(JSONError) {
                try member.forEachMember { name, value throws(JSONError) in
                    fields.add(name.description, try value.string())
                }
            } catch {
                throw PurgeHookError("headers: expected an object of texts")
            }
            for field in fields.fields {
                try PurgeHook.checkPlaceholders(field.value, "headers")
                guard field.value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }), field.name.isHeaderName else {
                    throw PurgeHookError("headers: expected names of headers, and values without control characters")
                }
            }
            return fields
        }
    }
}

extension String {
    /// True for a name that a request may set (RFC 9110, section 5.6.2), except for those that follow from the body.
    fileprivate var isHeaderName: Bool {
        let isToken =
            !isEmpty
            && utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
        return isToken && !["content-length", "transfer-encoding"].contains(lowercased())
    }
}
