import Digests
import Formats
import HTTPServer

/// URLs that let in whoever has them: for images on pages, whose readers have no key.
///
/// Signed is the target as it is sent, path and query, from its `/` up to the `&` or `?` before `signature=`, which comes last:
///
///     /v1/images/halcyon:%7B…%7D:…?keyId=1&expires=1790000000&signature=HEX
///
/// `signature` is the HMAC-SHA256 of that text in 64 lower-case hexadecimal digits, `keyId` names its key, and `expires` is the second since 1970 (UTC)
/// up to which it lets in. Nothing is decoded or put in order before, so that signer and server cannot differ about what is meant.
struct URLSigner: Sendable {
    /// The secrets by their ids.
    let keys: [String: [UInt8]]
    /// Whether a URL must say when it ends.
    let requiresExpiry: Bool

    /// Whether a request says that its URL is signed.
    static func isSigned(_ request: HTTPServer.Request) -> Bool { request.value(of: "signature") != nil }

    /// Looks whether a request's URL is signed as it must be, and is still good.
    /// - Returns: the last second since 1970 at which it is; nil for one without an end.
    /// - Throws: ``Problem/Kind/forbidden`` with what is wrong with it. That it has ended is told only of what was once good.
    func check(_ request: HTTPServer.Request, at now: Timestamp) throws(Problem) -> Int64? {
        guard ["GET", "HEAD"].contains(request.method) else {
            throw Problem(.forbidden, "a signed URL is only for reading")
        }
        for name in ["signature", "keyId", "expires"] where request.query.count(where: { $0.name == name }) > 1 {
            throw Problem(.forbidden, "the URL has several \(name)")
        }
        guard let (signed, code) = Self.parts(of: request.target) else {
            throw Problem(
                .forbidden, "the signature must be the last of the URL's parameters, in 64 hexadecimal digits")
        }
        guard let key = request.value(of: "keyId").flatMap({ keys[$0] }),
            HMACSHA256.code(of: Array(signed.utf8), key: key).isSame(inConstantTimeAs: code)
        else { throw Problem(.forbidden, "the URL's signature is not right") }
        guard let text = request.value(of: "expires") else {
            if requiresExpiry { throw Problem(.forbidden, "the URL must say when it expires") }
            return nil
        }
        guard text.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains), let expires = Int64(text) else {
            throw Problem(.forbidden, "the URL's expires must be a whole number of seconds since 1970")
        }
        guard now.seconds < Double(expires) + 1 else { throw Problem(.forbidden, "the URL has expired") }
        return expires
    }

    /// A target with its signature; nil when there is no such key.
    /// - Parameters:
    ///   - target: path and query, percent-encoded as it will be sent.
    ///   - expires: the last second since 1970 at which it lets in; nil for no end.
    func sign(_ target: String, keyId: String, expires: Int64?) -> String? {
        guard let key = keys[keyId] else { return nil }
        var text = target + (target.contains("?") ? "&" : "?") + "keyId=\(keyId)"
        if let expires { text += "&expires=\(expires)" }
        return "\(text)&signature=\(HMACSHA256.code(of: Array(text.utf8), key: key))"
    }

    /// What is signed, and the code; nil when something stands behind the signature, or it is none.
    private static func parts(of target: String) -> (signed: Substring, code: Digest256)? {
        let mark = "signature="
        guard let last = target.lastIndex(where: { $0 == "&" || $0 == "?" }) else { return nil }
        let parameter = target[target.index(after: last)...]
        guard parameter.hasPrefix(mark), let code = Digest256(parameter.dropFirst(mark.count)) else { return nil }
        return (target[..<last], code)
    }
}
