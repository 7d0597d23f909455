import Formats

/// A file, by a `file:` URL (RFC 8089) with an absolute path. Whether it may be read is its provider's affair.
public struct FileSource: TextualSource {
    /// What its URLs begin with, before the colon.
    public static let scheme = "file"

    /// As the job gave it.
    public let text: String
    /// The decoded path, which keys are made of: one slash between its parts, none of which is `.` or `..`.
    public let path: String

    /// - Throws: ``Failure`` `invalid_job` for a relative path, another machine's, one that climbs with `..`, a folder's, and
    ///   one with control characters or an encoded slash.
    public init(_ text: String) throws(Failure) {
        let bytes = Array(text.utf8)
        try checkCharacters(bytes, longest: WebURL.longest)
        var rest = bytes[(Self.scheme.utf8.count + 1)...]
        if rest.starts(with: "//".utf8) {
            rest = rest.dropFirst(2)
            let host = rest.prefix { $0 != UInt8(ascii: "/") }
            guard host.isEmpty || lowercased(host) == "localhost" else {
                throw .invalidURL("a file of another machine; write file:///path")
            }
            rest = rest[host.endIndex...]
        }
        guard rest.first == UInt8(ascii: "/") else { throw .invalidURL("expected an absolute path: file:///path") }
        guard !rest.contains(where: { "?#\\".utf8.contains($0) }) else {
            throw .invalidURL("a file: URL has no ?, # or \\; write them as %3F, %23 and %5C")
        }
        self.text = text
        path = try Self.path(rest)
    }

    private static func path(_ encoded: ArraySlice<UInt8>) throws(Failure) -> String {
        var path: [UInt8] = []
        var isFile = false
        for part in encoded.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard let part = PercentEncoding.decode(part) else { throw .invalidURL("% is written as %25") }
            guard !part.contains(UInt8(ascii: "/")) else { throw .invalidURL("a slash may not be written as %2F") }
            guard !part.hasControlCharacter else { throw .invalidURL("a path has no control characters") }
            guard part != Array("..".utf8) else { throw .invalidURL("a path may not climb with ..") }
            isFile = !part.isEmpty && part != Array(".".utf8)
            if isFile { path += [UInt8(ascii: "/")] + part }
        }
        guard isFile else { throw .invalidURL("this is a folder, not a file") }
        guard let path = String(validating: path, as: UTF8.self) else { throw .invalidURL("the path is not UTF-8") }
        return path
    }

    /// The URL of an absolute path.
    /// - Throws: as ``init(_:)``.
    public init(path: String) throws(Failure) {
        try self.init("\(Self.scheme)://\(PercentEncoding.encode(path, keeping: "/"))")
    }
}
