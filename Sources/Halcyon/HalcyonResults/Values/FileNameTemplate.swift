import Formats
import HalcyonModel

/// A template for the names of files in the result store, such as `{source.path}/{width}x{height}.{format}`. A pure value.
///
/// Two results never have the same name: unless the template contains `{key}`, a hash of the key is inserted before the
/// extension. Names do not lead out of their folder, whatever the source contains.
public struct FileNameTemplate: Hashable, Sendable {
    /// The placeholders of a template.
    public enum Placeholder: String, CaseIterable, Sendable {
        /// The host of a URL or the bucket of an object; for other sources their kind.
        case sourceHost = "source.host"
        /// The path of a URL, a file or an object; for other sources what identifies them.
        case sourcePath = "source.path"
        /// The size in pixels, the format, and the two hashes of the key.
        case width, height, format, key
    }

    /// The form of a template, for messages.
    public static let expectation =
        "a relative path such as {source.path}/{width}x{height}.{format}, of at most \(longest) letters, digits and "
        + "-_.=~/, and of placeholders: "
        + Placeholder.allCases.map { "{\($0.rawValue)}" }.joined(separator: ", ")

    /// The maximum length of a template in bytes.
    static let longest = 256
    /// The maximum lengths of a name and of each of its segments in bytes. S3 allows 1,024 bytes with the prefix, and
    /// file systems 255 with the endings of temporary files.
    private static let (longestName, longestSegment) = (440, 150)

    private let template: NameTemplate

    /// Parses a template; nil if it is malformed, absolute, or has a segment that is empty or begins with a dot.
    public init?(_ text: String) {
        // The message of the error is replaced by ``expectation``.
        guard text.utf8.count <= Self.longest,
            let template = try? NameTemplate(text, placeholders: Placeholder.allCases.map(\.rawValue)),
            Self.isName(template.joined { _ in "x" })
        else { return nil }
        self.template = template
    }

    /// The template as given.
    public var text: String { template.text }

    /// Returns the name of the file of a result. Equal keys and metadata have equal names.
    public func name(of key: ResultKey, _ metadata: ResultMetadata, from source: Source) -> String {
        let place = source.place
        let name = template.joined { placeholder in
            switch Placeholder(rawValue: placeholder) {
            case .sourceHost: Self.plain(place.host, keeping: "")
            case .sourcePath: Self.plain(place.path, keeping: "/")
            case .width: "\(metadata.width)"
            case .height: "\(metadata.height)"
            case .format: metadata.format.fileExtension
            case .key: "\(key.sourceHash)-\(key.variantHash)"
            case nil: ""
            }
        }
        let segments = name.split(separator: "/").map { Self.segment($0) }
        var short: [String] = []
        for segment in segments {
            guard short.reduce(segment.utf8.count, { $0 + $1.utf8.count + 1 }) <= Self.longestName else { break }
            short.append(segment)
        }
        let whole = short.joined(separator: "/")
        if whole == name, template.placeholders.contains(Placeholder.key.rawValue) { return whole }
        let last = short.popLast() ?? "_"
        let ending = last.lastIndex(of: ".").map { last[$0...] }.flatMap { $0.utf8.count <= 8 ? $0 : nil } ?? ""
        let hash = "\(key.sourceHash.prefix(16))\(key.variantHash.prefix(16))"
        return (short + ["\(last.dropLast(ending.count))-\(hash)\(ending)"]).joined(separator: "/")
    }

    /// Returns true if a text is the name of a file: segments of the characters that names in a storage have, none of
    /// which begins with a dot.
    static func isName(_ text: String) -> Bool {
        (1...1024).contains(text.utf8.count)
            && text.split(separator: "/", omittingEmptySubsequences: false).allSatisfy {
                !$0.isEmpty && !$0.hasPrefix(".") && $0.utf8.allSatisfy(isPlain) && !hasReservedEnding($0)
            }
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        PercentEncoding.isUnreserved(byte) || byte == UInt8(ascii: "=")
    }

    /// True for the endings of files that a folder has beside those of objects.
    private static func hasReservedEnding(_ segment: some StringProtocol) -> Bool {
        segment.hasSuffix(".record") || segment.hasSuffix(".draft")
    }

    /// Replaces all other bytes by underscores.
    private static func plain(_ text: String, keeping others: String) -> String {
        let bytes = PercentEncoding.decode(Array(text.utf8)[...]) ?? Array(text.utf8)
        return String(
            decoding: bytes.map { isPlain($0) || others.utf8.contains($0) ? $0 : UInt8(ascii: "_") }, as: UTF8.self)
    }

    private static func segment(_ text: Substring) -> String {
        var segment = String(decoding: text.utf8.prefix(longestSegment), as: UTF8.self)
        if segment.hasPrefix(".") { segment = "_" + segment.dropFirst() }
        return hasReservedEnding(segment) ? segment + "_" : segment
    }
}

extension Source {
    /// What names of files show of a source. It depends only on what identifies the source in keys, so that all jobs for
    /// a result have the same name for it.
    fileprivate var place: (host: String, path: String) {
        switch self {
        case .web(let url):
            if let name = url.cacheKeyName { return ("key", name) }
            // After the scheme and the authority. A canonical URL has a path.
            let parts = url.canonical.utf8.split(
                separator: UInt8(ascii: "/"), maxSplits: 3, omittingEmptySubsequences: false)
            let path = parts[3].prefix { $0 != UInt8(ascii: "?") }
            return (url.host, path.isEmpty ? "index" : String(decoding: path, as: UTF8.self))
        case .s3(let object): return (object.bucket, object.key)
        case .file(let file): return ("file", file.path)
        case .initials(let initials): return ("initials", initials.text)
        case .data(let data): return ("data", data.name ?? String(data.text.dropFirst(5)))
        case .video(let video): return video.input.place
        case .custom(let source): return (source.name, source.key)
        }
    }
}
