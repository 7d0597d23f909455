import Formats
import HTTPServer
import Hashing
import TestSupport
import Testing

@testable import HalcyonGateway

/// Signed URLs, which authenticate requests without a key.
@Suite struct SignedURLTests {
    private static let old = Array("an old secret of 32 bytes or more".utf8)
    private static let new = Array("the secret that takes its place 1".utf8)
    private static let target = "/v1/pictures/cat%7B1%7D?width=40&text=a%20b"
    private static let signer = URLSigner(keys: ["old": old, "new": new], requiresExpiry: true)
    private static let routes: [Route] = [
        .yes("GET", "/v1/pictures/{name}", for: .read, acceptsSignature: true),
        .yes("POST", "/v1/pictures/{name}", for: .read, acceptsSignature: true),
        .yes("GET", "/v1/other/{name}", for: .read),
    ]
    private static let later = Timestamp.now.milliseconds / 1000 + 3600

    /// Runs `body` with a server that requires a key or a signed URL.
    private func withProtectedServer(
        _ access: AccessOptions = Self.access(), _ body: (UInt16) async throws -> Void
    ) async throws {
        try await withServer(Self.routes, access) { try await body($0) }
    }

    private static func access(_ change: (inout AccessOptions) -> Void = { _ in }) -> AccessOptions {
        .with {
            $0.keys = [APIKey(name: "k", secret: "k", scopes: [.read])]
            $0.urlKeys = ["old": old, "new": new]
            change(&$0)
        }
    }

    private func signed(_ text: String, _ key: [UInt8]) -> String {
        "\(text)&signature=\(HMACSHA256.code(of: Array(text.utf8), key: key))"
    }

    /// The example in docs/access.md, created with `openssl dgst -sha256 -hmac`, by which other signers can be checked.
    @Test func signatureIsHMACOfThePrecedingURL() {
        let signer = URLSigner(keys: ["1": Array("0123456789abcdef0123456789abcdef".utf8)], requiresExpiry: true)
        #expect(
            signer.sign(
                "/v1/render?source=https%3A%2F%2Fexample.org%2Fcat.jpg&width=400", keyId: "1", expires: 1_790_000_000)
                == "/v1/render?source=https%3A%2F%2Fexample.org%2Fcat.jpg&width=400&keyId=1&expires=1790000000&signature=fa2e1359ceb8e94b2c9b81f45da9ee7ad5487a0497cad0e391f2e397db998c14"
        )
        #expect(signer.sign("/a", keyId: "1", expires: nil)?.hasPrefix("/a?keyId=1&signature=") == true)
        #expect(signer.sign("/a", keyId: "2", expires: nil) == nil)
    }

    @Test func acceptsAnyKnownSigningKey() async throws {
        let targets = try ["old", "new"].map {
            try #require(Self.signer.sign(Self.target, keyId: $0, expires: Self.later))
        }
        try await withProtectedServer { port in
            let client = try RawClient(port)
            for target in targets {
                #expect(try await client.get(target).status == 200)
                #expect(try await client.ask("HEAD", target).status == 200)
            }
            #expect(try await client.get(Self.target).status == 401)
        }
        try await withProtectedServer(Self.access { $0.urlKeys["old"] = nil }) { port in
            let client = try RawClient(port)
            #expect(try await client.get(targets[0]).status == 403)
            #expect(try await client.get(targets[1]).status == 200)
        }
        try await withProtectedServer(Self.access { $0.urlKeys = [:] }) { port in
            let client = try RawClient(port)
            #expect(try await client.get(targets[1]).status == 403)
        }
    }

    @Test func isValidOnlyForReadsOnAcceptingRoutes() async throws {
        let target = try #require(Self.signer.sign(Self.target, keyId: "new", expires: Self.later))
        let other = try #require(Self.signer.sign("/v1/other/cat", keyId: "new", expires: Self.later))
        try await withProtectedServer { port in
            let client = try RawClient(port)
            #expect(try await client.ask("POST", target).status == 403)
            #expect(try await client.get(other).status == 401)
            #expect(try await client.get(other, "X-API-Key: k\r\n").status == 200)
        }
    }

    /// Replaces, removes and duplicates each byte of the target.
    @Test func rejectsAnyModifiedByte() async throws {
        let target = Array(try #require(Self.signer.sign(Self.target, keyId: "new", expires: Self.later)).utf8)
        try await withProtectedServer { port in
            let client = try RawClient(port)
            func isAccepted(_ bytes: [UInt8]) async throws -> Bool {
                try await client.get(String(decoding: bytes, as: UTF8.self)).status == 200
            }
            #expect(try await isAccepted(target))
            for index in target.indices.dropFirst() {
                for other: UInt8 in [UInt8(ascii: "x"), UInt8(ascii: "0"), target[index] ^ 1]
                where other != target[index] {
                    // The HTTP server rejects malformed targets and closes the connection.
                    guard other > 0x20, other < 0x7f, other != UInt8(ascii: "#"), other != UInt8(ascii: "%"),
                        !target[max(0, index - 2)...index].contains(UInt8(ascii: "%"))
                    else { continue }
                    var changed = target
                    changed[index] = other
                    #expect(try await !isAccepted(changed), "\(String(decoding: changed, as: UTF8.self))")
                }
                if !target[max(0, index - 2)...index].contains(UInt8(ascii: "%")) {
                    var shorter = target
                    shorter.remove(at: index)
                    #expect(try await !isAccepted(shorter), "\(String(decoding: shorter, as: UTF8.self))")
                    var longer = target
                    longer.insert(target[index], at: index)
                    #expect(try await !isAccepted(longer), "\(String(decoding: longer, as: UTF8.self))")
                }
            }
        }
    }

    @Test func rejectsEquivalentSpellingsOfTheURL() async throws {
        let target = try #require(Self.signer.sign(Self.target, keyId: "new", expires: Self.later))
        try await withProtectedServer { port in
            let client = try RawClient(port)
            for (from, to) in [
                ("%7B", "{"), ("%7B", "%7b"), ("%20", "+"), ("?width", "?&width"), ("signature=", "%73ignature="),
                ("/v1", "//v1"), ("/v1", "http://a/v1"), ("keyId=new", "keyId=%6eew"), ("keyId=new", "keyId=old"),
            ] {
                let other = target.replacing(from, with: to)
                #expect(other != target)
                #expect(try await client.get(other).status != 200, "\(other)")
            }
            let digits = target.suffix(64)
            #expect(try await client.get(target.dropLast(64) + digits.uppercased()).status == 403)
        }
    }

    @Test func rejectsDuplicateOrTrailingParameters() async throws {
        let base = "\(Self.target)&keyId=new&expires=\(Self.later)"
        let valid = signed(base, Self.new)
        try await withProtectedServer { port in
            let client = try RawClient(port)
            #expect(try await client.get(valid).status == 200)
            for target in [
                valid + "&width=4000", valid + "&", valid + "?",
                signed(base + "&keyId=new", Self.new), signed(base + "&expires=9", Self.new),
                signed(base + "&expires=99999999999", Self.new), signed(signed(base, Self.new), Self.new),
                signed(base + "&%73ignature=0", Self.new), signed(base + "&key%49d=old", Self.new),
                signed("\(Self.target)&expires=\(Self.later)", Self.new), base + "&signature=", base + "&signature",
            ] {
                #expect(try await client.get(target).status == 403, "\(target)")
            }
        }
    }

    @Test func requiresAndEnforcesExpiry() async throws {
        let now = Timestamp.now.milliseconds / 1000
        let past = try #require(Self.signer.sign(Self.target, keyId: "new", expires: now - 2))
        let endless = try #require(Self.signer.sign(Self.target, keyId: "new", expires: nil))
        try await withProtectedServer { port in
            let client = try RawClient(port)
            let answer = try await client.get(past)
            #expect(answer.status == 403 && answer.text.contains("the URL has expired"))
            #expect(try await client.get(endless).status == 403)
            // Only URLs with a valid signature are reported as expired.
            let forged = try await client.get(past.dropLast(1) + (past.hasSuffix("0") ? "1" : "0"))
            #expect(forged.status == 403 && forged.text.contains("signature of the URL is invalid"))
            for expires in ["", "-1", "1e9", "+99999999999", "99999999999.5", "99999999999999999999"] {
                let target = signed("\(Self.target)&keyId=new&expires=\(expires)", Self.new)
                #expect(try await client.get(target).status == 403, "\(expires)")
            }
        }
        try await withProtectedServer(Self.access { $0.requiresExpiry = false }) { port in
            let client = try RawClient(port)
            #expect(try await client.get(endless).status == 200)
            #expect(try await client.get(past).status == 403)
        }
    }

    @Test func invalidSignatureIsRejectedEvenWithAKey() async throws {
        try await withProtectedServer { port in
            let client = try RawClient(port)
            #expect(try await client.get(Self.target + "&signature=0", "X-API-Key: k\r\n").status == 403)
        }
        try await withProtectedServer(Self.access { $0.keys = [] }) { port in
            let client = try RawClient(port)
            #expect(try await client.get(Self.target).status == 401)
            #expect(try await client.get(Self.target + "&signature=0").status == 403)
        }
    }
}
