import CSimdJSON

/// Reading of JSON texts (RFC 8259) with simdjson.
public enum JSON {
    /// The version of simdjson that this was built with, such as `3.0.1`.
    public static var libraryVersion: String {
        let version = csj_library_version()
        return "\(version.major).\(version.minor).\(version.revision)"
    }

    /// Parses one text and gives its outermost value, which keeps what it needs: `bytes` may go away.
    ///
    /// - Parameters:
    ///   - maximumSize: bytes.
    ///   - maximumDepth: how deep arrays and objects may nest; 1 allows `[0]` and refuses `[[0]]`. Empty ones do not
    ///     count.
    /// - Throws: ``JSONError`` of code `tooLarge`, `tooDeep`, `malformed`, `unreadableNumber` or `noMemory`.
    public static func parse(
        _ bytes: [UInt8], maximumSize: Int, maximumDepth: Int = 32
    ) throws(JSONError) -> JSONElement {
        guard bytes.count <= maximumSize else {
            throw JSONError(.tooLarge, "\(bytes.count) bytes, and at most \(maximumSize) are allowed")
        }
        let document: Result<JSONDocument, JSONError> = bytes.withUnsafeBytes { bytes in
            Result { () throws(JSONError) in try JSONDocument(parsing: bytes, maximumDepth: maximumDepth) }
        }
        return JSONElement(try document.get())
    }
}
