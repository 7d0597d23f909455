import Formats

/// A file named by a `file:` URL (RFC 8089) with an absolute path. The file provider decides whether it may be read.
public struct FileSource: StringRepresentableSource {
    /// The URL scheme.
    public static let scheme = "file"

    /// The URL as given in the job.
    public let text: String
    /// The decoded, normalized path, as used in cache keys: single slashes between segments, no `.` or `..` segments.
    public let path: String

    /// Parses a `file:` URL.
    /// - Throws: ``JobError`` `invalid_job` if the URL names another host or a directory, or if the path is relative or
    ///   contains `..` segments, control characters or an encoded slash.
    public init(_ text: String) throws(JobError) {
        let bytes = Array(text.utf8)
        try checkCharacters(bytes, longest: WebURL.longest)
        var rest = bytes[(Self.scheme.utf8.count + 1)...]
        if rest.starts(with: "//".utf8) {
            rest = rest.dropFirst(2)
            let host = rest.prefix { $0 != UInt8(ascii: "/") }
            guard host.isEmpty || lowercased(host) == "localhost" else {
                throw .invalidURL("the URL names another host; expected file:///path")
            }
            rest = rest[host.endIndex...]
        }
        guard rest.first == UInt8(ascii: "/") else { throw .invalidURL("expected an absolute path: file:///path") }
        guard !rest.contains(where: { "?#\\".utf8.contains($0) }) else {
            throw .invalidURL("a file: URL must not contain ?, # or \\; write them as %3F, %23 and %5C")
        }
        self.text = text
        path = try Self.path(rest)
    }

    private static func path(_ encoded: ArraySlice<UInt8>) throws(JobError) -> String {
        var path: [UInt8] = []
        var isFile = false
        for part in encoded.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard let part = PercentEncoding.decode(part) else { throw .invalidURL("invalid escape; write % as %25") }
            guard !part.contains(UInt8(ascii: "/")) else { throw .invalidURL("a slash must not be written as %2F") }
            guard !part.hasControlCharacter else { throw .invalidURL("the path contains control characters") }
            guard part != Array("..".utf8) else { throw .invalidURL("the path must not contain .. segments") }
            isFile = !part.isEmpty && part != Array(".".utf8)
            if isFile { path += [UInt8(ascii: "/")] + part }
        }
        guard isFile else { throw .invalidURL("the path is a directory; expected a file") }
        guard let path = String(validating: path, as: UTF8.self) else { throw .invalidURL("the path is not UTF-8") }
        return path
    }

    /// Creates a source from an absolute path.
    /// - Throws: ``JobError``, as ``init(_:)``.
    public init(path: String) throws(JobError) {
        try self.init("\(Self.scheme)://\(PercentEncoding.encode(path, keeping: "/"))")
    }
}
