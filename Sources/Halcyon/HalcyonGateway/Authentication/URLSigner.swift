import Formats
import HTTPServer
import Hashing

/// Creates and verifies signed URLs, which authorize every client that has them. They are meant for images on pages,
/// whose readers have no key.
///
/// The signature covers the request target as it is sent, path and query, from its `/` up to the `&` or `?` before
/// `signature=`, which must be the last parameter:
///
///     /v1/images/halcyon:%7B…%7D:…?keyId=1&expires=1790000000&signature=HEX
///
/// `signature` is the HMAC-SHA256 of that text in 64 lower-case hexadecimal digits, `keyId` names its key, and
/// `expires` is the last second since 1970 (UTC) at which the URL is valid. The text is neither decoded nor normalized
/// before, so signer and server cannot interpret it differently.
struct URLSigner: Sendable {
    /// The secrets by key id.
    let keys: [String: [UInt8]]
    /// True if a URL must have an expiry time.
    let requiresExpiry: Bool

    /// True if the URL of a request has a signature.
    static func isSigned(_ request: HTTPServer.Request) -> Bool { request.value(of: "signature") != nil }

    /// Verifies the signature and the expiry time of a request's URL.
    /// - Returns: the last second since 1970 at which the URL is valid; nil if it does not expire.
    /// - Throws: ``Problem/Kind/forbidden`` with the reason. Expiry is only reported for a valid signature.
    func check(_ request: HTTPServer.Request, at now: Timestamp) throws(Problem) -> Int64? {
        guard ["GET", "HEAD"].contains(request.method) else {
            throw Problem(.forbidden, "signed URLs allow only GET and HEAD")
        }
        for name in ["signature", "keyId", "expires"] where request.query.count(where: { $0.name == name }) > 1 {
            throw Problem(.forbidden, "the URL has more than one parameter \(name)")
        }
        guard let (signed, code) = Self.parts(of: request.target) else {
            throw Problem(
                .forbidden, "signature must be the last parameter of the URL and have 64 hexadecimal digits")
        }
        guard let key = request.value(of: "keyId").flatMap({ keys[$0] }),
            HMACSHA256.code(of: Array(signed.utf8), key: key).isSame(inConstantTimeAs: code)
        else { throw Problem(.forbidden, "the signature of the URL is invalid") }
        guard let text = request.value(of: "expires") else {
            if requiresExpiry { throw Problem(.forbidden, "the URL has no parameter expires, which is required") }
            return nil
        }
        guard text.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains), let expires = Int64(text) else {
            throw Problem(.forbidden, "expires must be an integer number of seconds since 1970")
        }
        guard now.seconds < Double(expires) + 1 else { throw Problem(.forbidden, "the URL has expired") }
        return expires
    }

    /// Returns a target with its signature; nil if there is no such key.
    /// - Parameters:
    ///   - target: the path and query, percent-encoded as they will be sent.
    ///   - expires: the last second since 1970 at which the URL is valid; nil for no expiry.
    func sign(_ target: String, keyId: String, expires: Int64?) -> String? {
        guard let key = keys[keyId] else { return nil }
        var text = target + (target.contains("?") ? "&" : "?") + "keyId=\(keyId)"
        if let expires { text += "&expires=\(expires)" }
        return "\(text)&signature=\(HMACSHA256.code(of: Array(text.utf8), key: key))"
    }

    /// Splits a target into the signed text and the signature; nil if the signature is malformed or not at the end.
    private static func parts(of target: String) -> (signed: Substring, code: Digest256)? {
        let mark = "signature="
        guard let last = target.lastIndex(where: { $0 == "&" || $0 == "?" }) else { return nil }
        let parameter = target[target.index(after: last)...]
        guard parameter.hasPrefix(mark), let code = Digest256(parameter.dropFirst(mark.count)) else { return nil }
        return (target[..<last], code)
    }
}
