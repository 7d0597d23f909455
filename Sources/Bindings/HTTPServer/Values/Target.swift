import Formats

extension HTTPServer {
    /// A pair of a query.
    public struct QueryItem: Hashable, Sendable {
        /// The decoded text before the first `=`.
        public let name: String
        /// The decoded text after the first `=`; empty if there is no `=`.
        public let value: String

        /// Creates a pair of decoded texts.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }
}

/// A parsed request target (RFC 9112, 3.2).
struct Target: Hashable {
    /// The host and port of a target in absolute form, which override `Host`.
    var authority: String?
    /// The decoded segments of the path: none for `/` and `*`, and `["a", ""]` for `/a/`.
    var path: [String] = []
    /// The decoded pairs of the query.
    var query: [HTTPServer.QueryItem] = []

    private typealias Bytes = UnsafeBufferPointer<UInt8>

    /// - Throws: 400 if the target is malformed, or if its escapes are not UTF-8.
    init(_ raw: String, method: String) throws(HTTPServer.HTTPRequestError) {
        var raw = raw
        let result: Result<Target, HTTPServer.HTTPRequestError> = raw.withUTF8 { bytes in
            do throws(HTTPServer.HTTPRequestError) {
                return .success(try Target(bytes, isForAll: method == "OPTIONS" && bytes.elementsEqual("*".utf8)))
            } catch {
                return .failure(error)
            }
        }
        self = try result.get()
    }

    /// - Parameter isForAll: True if the target is the `*` that means the server itself.
    private init(_ raw: Bytes, isForAll: Bool) throws(HTTPServer.HTTPRequestError) {
        guard raw.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "#") }) else {
            throw HTTPServer.HTTPRequestError(400, "The request target has characters that must be percent-encoded.")
        }
        if isForAll { return }
        var start = 0
        if let host = Self.authorityStart(of: raw) {
            start = Self.end(of: host..<raw.count, in: raw) { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }
            guard start > host else { throw HTTPServer.HTTPRequestError(400, "The request target has no host.") }
            authority = String(decoding: raw[host..<start], as: UTF8.self)
        } else if raw.first != UInt8(ascii: "/") {
            throw HTTPServer.HTTPRequestError(400, "The request target must be a path or an http URL.")
        }
        let pathEnd = Self.end(of: start..<raw.count, in: raw) { $0 == UInt8(ascii: "?") }
        // A URL may end with its host.
        if pathEnd - start > 1 {
            path.reserveCapacity(4)
            var from = start + 1
            while from <= pathEnd {
                let end = Self.end(of: from..<pathEnd, in: raw) { $0 == UInt8(ascii: "/") }
                path.append(try Self.decode(raw, from..<end))
                from = end + 1
            }
        }
        var from = pathEnd + 1
        while from < raw.count {
            let end = Self.end(of: from..<raw.count, in: raw) { $0 == UInt8(ascii: "&") }
            defer { from = end + 1 }
            if end == from { continue }
            let nameEnd = Self.end(of: from..<end, in: raw) { $0 == UInt8(ascii: "=") }
            query.append(
                HTTPServer.QueryItem(
                    try Self.decode(raw, from..<nameEnd, plusIsBlank: true),
                    nameEnd < end ? try Self.decode(raw, nameEnd + 1..<end, plusIsBlank: true) : ""))
        }
    }

    /// The index of the first matching byte of `part`, or the end of the part.
    private static func end(of part: Range<Int>, in raw: Bytes, by isEnd: (UInt8) -> Bool) -> Int {
        raw[part].firstIndex(where: isEnd) ?? part.upperBound
    }

    /// The index at which the host of `http://host/path` begins; nil for targets in another form.
    private static func authorityStart(of raw: Bytes) -> Int? {
        if raw.first == UInt8(ascii: "/") { return nil }
        for scheme in ["http://", "https://"] {
            let count = scheme.utf8.count
            if String(decoding: raw.prefix(count), as: UTF8.self).isSame(as: scheme) { return count }
        }
        return nil
    }

    private static func decode(
        _ raw: Bytes, _ range: Range<Int>, plusIsBlank: Bool = false
    ) throws(HTTPServer.HTTPRequestError) -> String {
        let bytes = Bytes(rebasing: raw[range])
        // All bytes are ASCII, as checked by the initializer.
        if !bytes.contains(where: { $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: "+") }) {
            return String(decoding: bytes, as: UTF8.self)
        }
        guard let decoded = PercentEncoding.decode(bytes, plusIsSpace: plusIsBlank), !decoded.contains(0) else {
            throw HTTPServer.HTTPRequestError(400, "Malformed percent-encoding in the request target.")
        }
        guard let text = String(validating: decoded, as: UTF8.self) else {
            throw HTTPServer.HTTPRequestError(400, "The percent-encoded bytes of the request target are not UTF-8.")
        }
        return text
    }
}
