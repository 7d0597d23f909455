import Formats

extension HTTPServer {
    /// One pair of a query.
    public struct QueryItem: Hashable, Sendable {
        /// What stands before the first `=`, decoded.
        public let name: String
        /// What stands behind it, decoded; empty where there is no `=`.
        public let value: String

        /// A pair of decoded texts.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }
}

/// A request's target, taken apart (RFC 9112, 3.2).
struct Target: Hashable {
    /// The host and port of a target in absolute form, which then count in place of `Host`.
    var authority: String?
    /// The decoded segments of the path: none for `/`, and `["a", ""]` for `/a/`. None for `*` as well.
    var path: [String] = []
    /// The decoded pairs of the query.
    var query: [HTTPServer.QueryItem] = []

    private typealias Bytes = UnsafeBufferPointer<UInt8>

    /// - Throws: 400 for a target that is none, or whose escapes are not UTF-8.
    init(_ raw: String, method: String) throws(HTTPServer.Refusal) {
        var raw = raw
        let result: Result<Target, HTTPServer.Refusal> = raw.withUTF8 { bytes in
            do throws(HTTPServer.Refusal) {
                return .success(try Target(bytes, isForAll: method == "OPTIONS" && bytes.elementsEqual("*".utf8)))
            } catch {
                return .failure(error)
            }
        }
        self = try result.get()
    }

    /// - Parameter isForAll: it is the `*` that stands for the server itself.
    private init(_ raw: Bytes, isForAll: Bool) throws(HTTPServer.Refusal) {
        guard raw.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "#") }) else {
            throw HTTPServer.Refusal(400, "The target holds characters that must be escaped.")
        }
        if isForAll { return }
        var start = 0
        if let host = Self.authorityStart(of: raw) {
            start = Self.end(of: host..<raw.count, in: raw) { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }
            guard start > host else { throw HTTPServer.Refusal(400, "The target has no host.") }
            authority = String(decoding: raw[host..<start], as: UTF8.self)
        } else if raw.first != UInt8(ascii: "/") {
            throw HTTPServer.Refusal(400, "The target is not a path.")
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

    /// Where the first such byte of `part` stands, or where the part ends.
    private static func end(of part: Range<Int>, in raw: Bytes, by isEnd: (UInt8) -> Bool) -> Int {
        raw[part].firstIndex(where: isEnd) ?? part.upperBound
    }

    /// Where the host of `http://host/path` begins; nil for targets of another form.
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
    ) throws(HTTPServer.Refusal) -> String {
        let bytes = Bytes(rebasing: raw[range])
        // ASCII alone, as has been looked at.
        if !bytes.contains(where: { $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: "+") }) {
            return String(decoding: bytes, as: UTF8.self)
        }
        guard let decoded = PercentEncoding.decode(bytes, plusIsSpace: plusIsBlank), !decoded.contains(0) else {
            throw HTTPServer.Refusal(400, "The target has an escape that is none.")
        }
        guard let text = String(validating: decoded, as: UTF8.self) else {
            throw HTTPServer.Refusal(400, "The target's escapes are not UTF-8.")
        }
        return text
    }
}
