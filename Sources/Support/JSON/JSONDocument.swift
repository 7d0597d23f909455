import CSimdJSON
import Concurrency

/// A parsed text. It borrows a parser from the pool as long as a value of the text is referenced.
///
/// `@unchecked Sendable`: the parser is modified only in ``init(parsing:maximumDepth:)``. Afterwards it is only read,
/// which simdjson allows from any thread.
final class JSONDocument: @unchecked Sendable {
    private let parser: OpaquePointer
    private(set) var root = csj_value()

    init(parsing bytes: UnsafeRawBufferPointer, maximumDepth: Int) throws(JSONError) {
        guard let parser = Self.idle.withLock({ $0.popLast() }) ?? csj_parser_new() else {
            throw JSONError(CSJ_NO_MEMORY)
        }
        self.parser = parser
        let text = bytes.assumingMemoryBound(to: UInt8.self)
        let code = csj_parse(parser, text.baseAddress, text.count, maximumDepth, &root)
        if code != CSJ_OK { throw JSONError(code) }
    }

    deinit {
        // A parser that grew for one large text would hold that memory forever.
        let isSmall = csj_parser_capacity(parser) <= 1 << 16
        let isKept = Self.idle.withLock { idle in
            guard isSmall, idle.count < 16 else { return false }
            idle.append(parser)
            return true
        }
        if !isKept { csj_parser_free(parser) }
    }

    /// Idle parsers with their memory, ready for reuse.
    private static let idle = Lock<[OpaquePointer]>([])
}

extension JSONError {
    fileprivate init(_ code: csj_error) {
        switch code {
        case CSJ_EMPTY: self.init(.malformed, "expected JSON, found nothing")
        case CSJ_BYTE_ORDER_MARK:
            self.init(.malformed, "starts with a byte order mark, which JSON does not allow (RFC 8259, 8.1)")
        case CSJ_TOO_DEEP: self.init(.tooDeep, "arrays and objects are nested too deeply")
        case CSJ_BAD_UTF8: self.init(.malformed, "is not valid UTF-8")
        case CSJ_BAD_STRING: self.init(.malformed, "has an unterminated string or an invalid escape")
        case CSJ_BAD_NUMBER: self.init(.unreadableNumber, "has a malformed number, or one beyond 64 bits")
        case CSJ_BAD_LITERAL: self.init(.malformed, "has an invalid literal; expected true, false or null")
        case CSJ_NO_MEMORY: self.init(.noMemory, "out of memory while parsing")
        default: self.init(.malformed, "is not well-formed JSON")
        }
    }
}

/// A parser of JSON texts (RFC 8259) based on simdjson.
public enum JSON {
    /// The version of simdjson at build time, such as `3.0.1`.
    public static var libraryVersion: String {
        let version = csj_library_version()
        return "\(version.major).\(version.minor).\(version.revision)"
    }

    /// Parses a text and returns its outermost value. The value does not reference `bytes`.
    ///
    /// - Parameters:
    ///   - maximumSize: The size limit in bytes.
    ///   - maximumDepth: The nesting limit of arrays and objects; 1 allows `[0]` and rejects `[[0]]`. Empty ones do not
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
