import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What is asked of a gateway.
struct Request: Sendable {
    var method = "GET"
    /// Below `/v1/`; each is percent-encoded whole.
    var path: [String]
    var query: [(name: String, value: String)] = []
    var fields: [String: String] = [:]
    var body: Data?

    /// The request to the gateway at `base`.
    func url(at base: URL, key: String?) throws -> URLRequest {
        var target = base.absoluteString
        while target.hasSuffix("/") { target.removeLast() }
        target += "/v1/" + path.map(Self.encoded).joined(separator: "/")
        if !query.isEmpty {
            target += "?" + query.map { "\($0.name)=\(Self.encoded($0.value))" }.joined(separator: "&")
        }
        guard let url = URL(string: target) else { throw HalcyonError.notUnderstood("\(target) is no URL") }
        var request = URLRequest(url: url)
        request.httpMethod = method
        request.httpBody = body
        if let key { request.setValue("Bearer \(key)", forHTTPHeaderField: "Authorization") }
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }

    /// All but RFC 3986's unreserved characters percent-encoded.
    static func encoded(_ text: String) -> String {
        let plain = Array("-._~".utf8)
        return text.utf8.reduce(into: "") { result, byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: result.append(Character(UnicodeScalar(byte)))
            case let byte where plain.contains(byte): result.append(Character(UnicodeScalar(byte)))
            default: result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
    }
}
