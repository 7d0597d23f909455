import Formats
import HTTPServer
import HalcyonModel
import Hashing

/// The URL grammars of other image servers that the gateway serves, so that pages keep their URLs when the server is
/// replaced. None is served by default.
public struct CompatibleURLOptions: Sendable {
    /// URLs of imgproxy.
    public var imgproxy = ImgproxyURLOptions()
    /// URLs of thumbor.
    public var thumbor = ThumborURLOptions(.thumbor)
    /// URLs of imagor.
    public var imagor = ThumborURLOptions(.imagor)
    /// The formats that URLs without a format may select by the `Accept` header of the client; the first match is
    /// used. Empty by default: the format of the source.
    public var formats: [ImageFormat] = []

    /// Creates options that serve no grammar.
    public init() {}

    /// True if signatures of a grammar are checked.
    var hasKeys: Bool { !imgproxy.keys.isEmpty || !thumbor.keys.isEmpty || !imagor.keys.isEmpty }

    /// Returns the reason why these options cannot be used, with the name of the setting below `gateway.urls.`; nil if
    /// they can.
    public var mistake: (setting: String, reason: String)? {
        let grammars = [
            ("imgproxy", imgproxy.prefix, imgproxy.keys.isEmpty, imgproxy.allowsUnsigned, imgproxy.baseURL),
            ("thumbor", thumbor.prefix, thumbor.keys.isEmpty, thumbor.allowsUnsigned, thumbor.baseURL),
            ("imagor", imagor.prefix, imagor.keys.isEmpty, imagor.allowsUnsigned, imagor.baseURL),
        ]
        var prefixes: Set<[String]> = []
        for (name, text, isWithoutKeys, allowsUnsigned, base) in grammars {
            if !base.isEmpty, SourceURL.base(base) == nil {
                return ("\(name).baseURL", "expected a URL such as https://images.example.org/, found \(base)")
            }
            guard !text.isEmpty else { continue }
            guard let prefix = URLPrefix(text) else {
                return (
                    "\(name).prefix",
                    "expected / or a path such as /\(name) that no route of the gateway begins with, found \(text)"
                )
            }
            guard prefixes.insert(prefix.segments).inserted else {
                return ("\(name).prefix", "\(text) is also the prefix of another grammar")
            }
            if isWithoutKeys, !allowsUnsigned {
                return ("\(name).keys", "expected a key, because \(name).allowUnsigned is not set")
            }
        }
        return imgproxy.presetMistake.map { ("imgproxy.presets.\($0.name)", $0.reason) }
    }
}

/// Settings for URLs of imgproxy.
public struct ImgproxyURLOptions: Sendable {
    /// A pair of `IMGPROXY_KEY` and `IMGPROXY_SALT`.
    public struct Key: Hashable, Sendable {
        let key: [UInt8]
        let salt: [UInt8]

        /// - Parameter hexadecimal: the key, a colon and the salt, each in hexadecimal digits. Returns nil for other
        ///   texts.
        public init?(_ hexadecimal: String) {
            let parts = hexadecimal.split(separator: ":", omittingEmptySubsequences: false).map(Self.bytes)
            guard parts.count == 2, let key = parts[0], let salt = parts[1], !key.isEmpty else { return nil }
            (self.key, self.salt) = (key, salt)
        }

        private static func bytes(_ digits: Substring) -> [UInt8]? {
            let values = digits.compactMap { $0.isASCII ? $0.hexDigitValue : nil }
            guard values.count == digits.utf8.count, values.count.isMultiple(of: 2) else { return nil }
            return stride(from: 0, to: values.count, by: 2).map { (first: Int) -> UInt8 in
                UInt8(values[first] << 4 | values[first + 1])
            }
        }
    }

    /// The path that the URLs begin with, such as `/` or `/imgproxy`; empty if they are not served.
    public var prefix = ""
    /// The pairs of key and salt. Several are valid at once during key rotation.
    public var keys: [Key] = []
    /// The number of bytes of a signature (`IMGPROXY_SIGNATURE_SIZE`), 1 to 32.
    public var signatureSize = 32
    /// True if URLs may have any signature. It applies only without ``keys``.
    public var allowsUnsigned = false
    /// Processing options by the name of the preset, as in `IMGPROXY_PRESETS`. `default` applies to every URL.
    public var presets: [String: String] = [:]
    /// True if URLs can only name presets (`IMGPROXY_ONLY_PRESETS`).
    public var onlyPresets = false
    /// The quality of formats without their own (`IMGPROXY_QUALITY`).
    public var quality = 80
    /// The qualities of formats (`IMGPROXY_FORMAT_QUALITY`).
    public var formatQualities: [ImageFormat: Int] = [.webp: 79, .avif: 63, .jxl: 77]
    /// The text before each source (`IMGPROXY_BASE_URL`); empty for none.
    public var baseURL = ""
    /// The source of the watermark (`IMGPROXY_WATERMARK_URL`); empty for none.
    public var watermark = ""

    /// Creates options that serve no URLs.
    public init() {}
}

/// Settings for URLs of thumbor and imagor, which share a grammar.
public struct ThumborURLOptions: Sendable {
    /// The server whose URLs are served. imagor extends the grammar of thumbor and differs in some filters.
    public enum Dialect: String, Sendable {
        case thumbor, imagor
    }

    let dialect: Dialect
    /// The path that the URLs begin with, such as `/` or `/thumbor`; empty if they are not served.
    public var prefix = ""
    /// The keys of signatures (`SECURITY_KEY`, `IMAGOR_SECRET`). Several are valid at once during key rotation.
    public var keys: [[UInt8]] = []
    /// The hash function of signatures (`IMAGOR_SIGNER_TYPE`).
    public var algorithm = HMACAlgorithm.sha1
    /// The number of characters of a signature (`IMAGOR_SIGNER_TRUNCATE`); 0 for all.
    public var signatureLength = 0
    /// True if URLs with `unsafe` instead of a signature are served.
    public var allowsUnsigned = false
    /// The scheme of images without one.
    public var defaultScheme: String
    /// The URL that image paths are appended to; empty if they are URLs.
    public var baseURL = ""
    /// The quality of lossy formats if the URL names none; 0 for the default of Halcyon.
    public var quality: Int

    /// Creates options with the defaults of a server, which serve no URLs.
    public init(_ dialect: Dialect) {
        self.dialect = dialect
        defaultScheme = dialect == .thumbor ? "http" : "https"
        quality = dialect == .thumbor ? 80 : 0
    }
}

/// The path that the URLs of a grammar begin with. A pure value.
struct URLPrefix: Hashable {
    /// The first segments of Halcyon's own paths. No URL of a grammar begins with them.
    static let reserved: Set = [
        "v1", "healthz", "readyz", "metrics", "dashboard", "openapi.yaml", "asyncapi.yaml", "problems", "samples",
    ]

    /// The segments: none for `/`.
    let segments: [String]

    /// - Parameter text: `/`, or a path of letters, digits, hyphens and underscores. Returns nil for other texts.
    init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard text.hasPrefix("/"), text.utf8.count <= 128 else { return nil }
        let segments = parts.last == "" ? parts.dropLast() : parts
        let isPlain = segments.allSatisfy { segment in
            !segment.isEmpty
                && segment.utf8.allSatisfy { PercentEncoding.isUnreserved($0) && $0 != UInt8(ascii: ".") }
        }
        guard isPlain, segments.first.map({ !Self.reserved.contains(String($0)) }) ?? true else { return nil }
        self.segments = segments.map { String($0) }
    }

    /// Returns the target of a request behind the prefix, unchanged: its path without the leading `/`, and its query;
    /// nil without one.
    func rest(of target: String) -> (path: Substring, query: Substring?) {
        var path = target[...]
        if !path.hasPrefix("/") {
            // The absolute form, `http://host/path`.
            let authority = path.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false).last ?? ""
            path = authority.drop { $0 != "/" }
        }
        var query: Substring?
        if let mark = path.firstIndex(of: "?") {
            query = path[path.index(after: mark)...]
            path = path[..<mark]
        }
        path = path.dropFirst()
        for _ in segments { path = path.drop { $0 != "/" }.dropFirst() }
        return (path, query)
    }
}
