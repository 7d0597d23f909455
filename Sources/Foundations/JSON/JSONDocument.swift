import CSimdJSON
import Threads

/// One parsed text: a parser borrowed from the pool for as long as something refers to a value of the text.
///
/// `@unchecked Sendable`: the parser is written to only in ``init(parsing:maximumDepth:)``; afterwards it is only read,
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
        // A parser that grew for one large text would keep that memory for ever.
        let isSmall = csj_parser_capacity(parser) <= 1 << 16
        let isKept = Self.idle.withLock { idle in
            guard isSmall, idle.count < 16 else { return false }
            idle.append(parser)
            return true
        }
        if !isKept { csj_parser_free(parser) }
    }

    /// Parsers that wait for their next text, with the memory for it.
    private static let idle = Lock<[OpaquePointer]>([])
}

extension JSONError {
    fileprivate init(_ code: csj_error) {
        switch code {
        case CSJ_EMPTY: self.init(.malformed, "there is no JSON in it")
        case CSJ_BYTE_ORDER_MARK:
            self.init(.malformed, "starts with a byte order mark, which JSON must not (RFC 8259, 8.1)")
        case CSJ_TOO_DEEP: self.init(.tooDeep, "arrays and objects nest too deep")
        case CSJ_BAD_UTF8: self.init(.malformed, "is not valid UTF-8")
        case CSJ_BAD_STRING: self.init(.malformed, "has a string that is unclosed or wrongly escaped")
        case CSJ_BAD_NUMBER: self.init(.unreadableNumber, "has a number that is misspelt or past 64 bits")
        case CSJ_BAD_LITERAL: self.init(.malformed, "has a word that is none of true, false and null")
        case CSJ_NO_MEMORY: self.init(.noMemory, "no memory to parse it")
        default: self.init(.malformed, "is not well-formed JSON")
        }
    }
}

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
