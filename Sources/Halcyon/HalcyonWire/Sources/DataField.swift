import Digests
import HalcyonModel
import JSON
import PercentCoding

extension DataSource {
    /// The bytes of a `data:` URL (RFC 2397). Its media type is passed over: an image is known by its bytes.
    ///
    /// Spaces and line ends are written as `%20` and the like, or left out. Base64 may lack its padding.
    /// - Throws: ``Failure`` `invalid_job`.
    init(url text: String) throws(Failure) {
        let bytes = Array(text.utf8)
        guard bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
            throw Failure(.invalidJob, "a data: URL has no spaces, line ends or control characters")
        }
        guard let comma = bytes.firstIndex(of: UInt8(ascii: ",")) else {
            throw Failure(.invalidJob, "expected data:[type][;base64],… with a comma before the data")
        }
        guard let data = PercentEncoding.decode(bytes[comma...].dropFirst()) else {
            throw Failure(.invalidJob, "% is written as %25 in a data: URL")
        }
        let isBase64 = String(decoding: bytes[..<comma], as: UTF8.self).lowercased().hasSuffix(";base64")
        try self.init(isBase64 ? Self.bytes(base64: data) : data, sha256: Self.sha256)
    }

    /// `{"base64": "…"}`, perhaps with the `cacheKey` that the bytes are known by.
    init(_ value: JSONElement) throws(JSONError) {
        var text = ""
        var name: String?
        try value.forEachGiven { member, value throws(JSONError) in
            switch member {
            case "base64": text = try value.string()
            case "cacheKey": name = try value.string()
            default: throw JSONError(.unknown, "is no part of given bytes: base64, cacheKey")
            }
        }
        self = try checked { () throws(Failure) in
            let bytes = try Self.bytes(base64: Array(text.utf8))
            if let name { return try DataSource(bytes, name: name) }
            return try DataSource(bytes, sha256: Self.sha256)
        }
    }

    private static func bytes(base64 text: [UInt8]) throws(Failure) -> [UInt8] {
        let padding = text.count % 4 == 0 ? 0 : 4 - text.count % 4
        let padded = String(decoding: text, as: UTF8.self) + String(repeating: "=", count: padding)
        guard let bytes = Base64.decode(padded) else {
            throw Failure(.invalidJob, "this is no base64 (RFC 4648, section 4)")
        }
        return bytes
    }

    private static func sha256(_ bytes: [UInt8]) -> String { SHA256.hash(bytes).description }
}
