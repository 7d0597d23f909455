/// The URLs to which the results of a job are uploaded by HTTP PUT.
public enum UploadTargets: Hashable, Sendable {
    /// One URL for each variant, in their order. The URLs may be secrets.
    case urls([WebURL])
    /// A template that is expanded for each variant.
    case template(UploadTemplate)

    /// Parses a URL, or a template if the text contains braces.
    /// - Throws: ``JobError`` `invalid_job`, which does not quote the text, because it may be a secret.
    public init(_ text: String) throws(JobError) {
        if text.utf8.contains(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "}") }) {
            self = .template(try UploadTemplate(text))
        } else {
            self = .urls([try WebURL(secret: text)])
        }
    }
}

/// A template of upload URLs, such as `https://bucket.example.org/items/7/{variant}.{format}`. Placeholders are allowed
/// in the path and the query.
public struct UploadTemplate: Hashable, Sendable {
    /// The placeholders of a template.
    public enum Placeholder: String, CaseIterable, Sendable {
        /// The name of the variant, or its index if it has no name.
        case variant
        /// The index of the variant in the job, from 0.
        case index
        /// The width of the output in pixels.
        case width
        /// The height of the output in pixels.
        case height
        /// The format of the output, as in events.
        case format
        /// The key of the result: its two hashes, joined by a hyphen.
        case key
    }

    /// The output of a variant, from which placeholders get their values.
    public struct Output: Sendable {
        /// The name of the variant, or its index if it has no name.
        public var label: String
        /// The index of the variant in the job.
        public var index: Int
        /// The key of the result.
        public var key: ResultKey
        /// The width in pixels.
        public var width: Int
        /// The height in pixels.
        public var height: Int
        /// The format.
        public var format: ImageFormat

        /// Creates an output.
        public init(label: String, index: Int, key: ResultKey, width: Int, height: Int, format: ImageFormat) {
            self.label = label
            self.index = index
            self.key = key
            self.width = width
            self.height = height
            self.format = format
        }
    }

    private let template: NameTemplate

    /// Parses a template.
    /// - Throws: ``JobError`` `invalid_job` for a malformed template or URL, and for placeholders before the path or
    ///   after a `#`.
    public init(_ text: String) throws(JobError) {
        let template = try NameTemplate(text, placeholders: Placeholder.allCases.map(\.rawValue))
        let bytes = Array(text.utf8)
        let fragment = bytes.firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex
        guard let path = Self.path(of: bytes), !(bytes[..<path] + bytes[fragment...]).contains(UInt8(ascii: "{")) else {
            throw JobError(
                .invalidJob, "placeholders are allowed only in the path and the query of an http or https URL")
        }
        guard bytes.count <= WebURL.longest else {
            throw JobError(.invalidJob, "the template is longer than \(WebURL.longest) bytes")
        }
        self.template = template
        // The shortest value of a placeholder has one character.
        _ = try WebURL(secret: template.expanded { _ in "0" })
    }

    /// Returns the index at which the path or the query of a URL begins; nil if there is none.
    private static func path(of bytes: [UInt8]) -> Int? {
        guard let slashes = bytes.firstRange(of: Array("//".utf8)) else { return nil }
        return bytes[slashes.upperBound...].firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }
    }

    /// The template as given.
    public var text: String { template.text }

    /// Returns the URL for a variant.
    /// - Throws: ``JobError`` `invalid_job` if the URL is too long.
    public func url(for output: Output) throws(JobError) -> WebURL {
        try WebURL(
            secret: template.expanded { name in
                switch Placeholder(rawValue: name) {
                case .variant: output.label
                case .index: "\(output.index)"
                case .width: "\(output.width)"
                case .height: "\(output.height)"
                case .format: output.format.rawValue
                case .key: "\(output.key.sourceHash)-\(output.key.variantHash)"
                case nil: ""
                }
            })
    }
}
