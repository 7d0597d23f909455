import Formats
import HTTPServer
import HalcyonCoding
import Hashing
import TestSupport
import Testing

@testable import HalcyonGateway

/// Signatures of URLs of imgproxy, thumbor and imagor, and where their routes apply.
@Suite struct CompatibleURLSignatureTests {
    private static let encoded = "aHR0cDovL2V4YW1w/bGUuY29tL2ltYWdl/cy9jdXJpb3NpdHku/anBn"
    private static let gopher = "500x500/top/raw.githubusercontent.com/cshum/imagor/master/testdata/gopher.png"

    private static func imgproxy(_ change: (inout ImgproxyURLOptions) -> Void = { _ in }) -> CompatibleURLOptions {
        var options = CompatibleURLOptions()
        options.imgproxy.keys = [ImgproxyURLOptions.Key("736563726574:68656C6C6F")].compactMap(\.self)
        change(&options.imgproxy)
        return options
    }

    private static func thumbor(_ change: (inout CompatibleURLOptions) -> Void) -> CompatibleURLOptions {
        var options = CompatibleURLOptions()
        change(&options)
        return options
    }

    private static func kind(
        _ grammar: String, _ url: String, _ options: CompatibleURLOptions
    ) -> Problem.Kind? {
        do throws(Problem) {
            _ = try CompatibleURLTests.parse(grammar, url, options)
            return nil
        } catch {
            return error.kind
        }
    }

    /// The examples in the documentation of imgproxy, with the key `secret` and the salt `hello`. The second one has
    /// processing options of an older version, so only its signature is valid.
    @Test func acceptsDocumentedSignaturesOfImgproxy() {
        let path = "/rs:fill:300:400:0/g:sm/\(Self.encoded).png"
        let signature = "oKfUtW34Dvo2BGQehJFR4Nr0_rIjOtdtzJ3QFsUcXH8"
        #expect(Self.kind("imgproxy", "/\(signature)\(path)", Self.imgproxy()) == nil)
        #expect(Self.kind("imgproxy", "/\(signature)=\(path)", Self.imgproxy()) == nil)
        #expect(Self.kind("imgproxy", "/\(signature)\(path)?v=2", Self.imgproxy()) == nil)
        let old = "/AfrOrF3gWeDA6VOlDG4TzxMv39O7MXnF4CXpKUwGqRM/fill/300/400/sm/0/\(Self.encoded).png"
        #expect(Self.kind("imgproxy", old, Self.imgproxy()) == .badRequest)
    }

    @Test(arguments: [
        "/pKfUtW34Dvo2BGQehJFR4Nr0_rIjOtdtzJ3QFsUcXH8/rs:fill:300:400:0/g:sm/\(encoded).png",
        "/oKfUtW34Dvo2BGQehJFR4Nr0_rIjOtdtzJ3QFsUcXH8/rs:fill:300:401:0/g:sm/\(encoded).png",
        "/oKfUtW34Dvo2BGQehJFR4Nr0_rIjOtdtzJ3QFsUcXH8//rs:fill:300:400:0/g:sm/\(encoded).png",
        "/oKfUtW34Dvo2BGQehJFR4Nr0_rIjOtdtzJ3QFsUcXH8/rs%3Afill:300:400:0/g:sm/\(encoded).png",
        "/oKfUtW34Dvo/rs:fill:300:400:0/g:sm/\(encoded).png", "/unsafe/rs:fill:300:400:0/g:sm/\(encoded).png",
        "/_/w:1/\(encoded).png", "//w:1/\(encoded).png", "/w:1/\(encoded).png", "/", "/%00/w:1/\(encoded).png",
    ])
    func rejectsOtherSignaturesOfImgproxy(_ url: String) {
        #expect(Self.kind("imgproxy", url, Self.imgproxy()) == .forbidden)
        // With a key, unsigned URLs are never accepted.
        #expect(Self.kind("imgproxy", url, Self.imgproxy { $0.allowsUnsigned = true }) == .forbidden)
        // Without any, they are not accepted either.
        #expect(Self.kind("imgproxy", url, Self.imgproxy { $0.keys = [] }) == .forbidden)
    }

    @Test func acceptsShortSignaturesAndSeveralKeys() {
        let path = "/rs:fill:300:400:0/g:sm/\(Self.encoded).png"
        let short = Self.imgproxy {
            $0.signatureSize = 8
            $0.keys.insert(contentsOf: [ImgproxyURLOptions.Key("00:")].compactMap(\.self), at: 0)
        }
        #expect(short.imgproxy.keys.count == 2)
        #expect(Self.kind("imgproxy", "/oKfUtW34Dvo\(path)", short) == nil)
        #expect(Self.kind("imgproxy", "/oKfUtW34Dvo2BGQehJFR4Nr0_rIjOtdtzJ3QFsUcXH8\(path)", short) == .forbidden)
    }

    @Test(arguments: ["", ":", "zz:00", "0:00", "00", "00:0", "00:00:00", "٠٠:00"])
    func rejectsInvalidKeysOfImgproxy(_ text: String) { #expect(ImgproxyURLOptions.Key(text) == nil) }

    /// The examples in the documentation of imagor.
    @Test func acceptsDocumentedSignaturesOfImagor() {
        let plain = Self.thumbor { $0.imagor.keys = [Array("mysecret".utf8)] }
        #expect(Self.kind("imagor", "/cST4Ko5_FqwT3BDn-Wf4gO3RFSk=/\(Self.gopher)", plain) == nil)
        let short = Self.thumbor {
            $0.imagor.keys = [Array("other".utf8), Array("mysecret".utf8)]
            ($0.imagor.algorithm, $0.imagor.signatureLength) = (.sha256, 40)
        }
        #expect(Self.kind("imagor", "/IGEn3TxngivD0jy4uuiZim2bdUCvhcnVi1Nm0xGy/\(Self.gopher)", short) == nil)
        #expect(Self.kind("imagor", "/cST4Ko5_FqwT3BDn-Wf4gO3RFSk=/\(Self.gopher)", short) == .forbidden)
        let long = Self.thumbor {
            $0.imagor.keys = [Array("mysecret".utf8)]
            $0.imagor.algorithm = .sha512
        }
        let code =
            "pz0HppC3eVHj_KGn7jh3KvZEmC6gE-AbENJih2cO-Vyv83atC7MoZKEoGMxETN27v6M3PJei5ZTReGu_tcxXbg=="
        #expect(Self.kind("imagor", "/\(code)/\(Self.gopher)", long) == nil)
    }

    /// The signatures were computed with `openssl dgst -sha1 -hmac`.
    @Test func acceptsSignaturesOfThumborThatCoverTheQuery() {
        let options = Self.thumbor { $0.thumbor.keys = [Array("MY_SECURE_KEY".utf8)] }
        let url = "/0rHkmtntZXdz1YAMNM0R0s60CvI=/300x200/http://a.example/i.jpg?x=1"
        #expect(
            Self.kind("thumbor", "/3ZAFIB9OK_j_R10MafCdhFO99mE=/300x200/smart/path/to/image.jpg", options) == nil)
        #expect(Self.kind("thumbor", url, options) == nil)
        for other in [
            String(url.dropLast()), url + "2", String(url.dropLast(4)), "/unsafe/300x200/a.jpg", "/300x200/a.jpg", "/",
            "/0rHkmtntZXdz1YAMNM0R0s60CvI/300x200/http://a.example/i.jpg?x=1",
            "/0rHkmtntZXdz1YAMNM0R0s60CvI=/300x300/http://a.example/i.jpg?x=1",
        ] {
            #expect(Self.kind("thumbor", other, options) == .forbidden, "\(other)")
        }
        #expect(Self.kind("thumbor", "/unsafe/300x200/a.jpg", CompatibleURLOptions()) == .forbidden)
    }

    @Test func computesPublishedHMACs() {
        // RFC 2202, test case 2, and RFC 4231, test case 2.
        let (key, text) = (Array("Jefe".utf8), Array("what do ya want for nothing?".utf8))
        let codes = HMACAlgorithm.allCases.map { Base64.encode($0.code(of: text, key: key)) }
        #expect(codes[0] == "7/zfauXrL6LSdBbV8YTfnCWafHk=")
        #expect(codes[1] == "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=")
        #expect(codes[2].hasPrefix("Fkt6e/z4GeLjlfvnO1bgo4e9ZCIugx/WECcM1+olBVSX") && codes[2].count == 88)
    }

    @Test(
        arguments: [
            ("", nil), ("/", []), ("/imgproxy", ["imgproxy"]), ("/a/b-c_d/", ["a", "b-c_d"]), ("imgproxy", nil),
            ("/v1", nil), ("/v1/x", nil), ("/metrics", nil), ("/dashboard/x", nil), ("/a//b", nil), ("/a%20b", nil),
            ("/..", nil), ("/a b", nil), ("/{x}", nil), ("//", nil),
        ] as [(String, [String]?)])
    func prefixesArePlainPaths(_ text: String, _ segments: [String]?) {
        #expect(URLPrefix(text)?.segments == segments)
    }

    @Test func restIsThePathBehindThePrefix() throws {
        for (prefix, target, path, query) in [
            ("/", "/a/b", "a/b", nil), ("/", "/a/b?c?d", "a/b", "c?d"), ("/x", "/x/a//b", "a//b", nil),
            ("/x/y", "http://host/x/%79/a?b", "a", "b"), ("/x", "/%78/a", "a", nil), ("/x", "/x/", "", nil),
        ] as [(String, String, String, String?)] {
            let rest = try #require(URLPrefix(prefix)).rest(of: target)
            #expect(rest.path == path && rest.query.map { String($0) } == query, "\(target)")
        }
    }

    @Test func mistakesNameTheSetting() {
        #expect(CompatibleURLTests.options.mistake?.setting == "imgproxy.presets.loop")
        #expect(CompatibleURLOptions().mistake == nil)
        let cases: [(String, (inout CompatibleURLOptions) -> Void)] = [
            ("imgproxy.keys", { $0.imgproxy.prefix = "/" }), ("thumbor.keys", { $0.thumbor.prefix = "/t" }),
            ("imagor.prefix", { $0.imagor.prefix = "/v1" }),
            (
                "imagor.prefix",
                {
                    ($0.thumbor.prefix, $0.thumbor.allowsUnsigned) = ("/t", true)
                    ($0.imagor.prefix, $0.imagor.allowsUnsigned) = ("/t/", true)
                }
            ),
            ("thumbor.baseURL", { $0.thumbor.baseURL = "images.example.org" }),
            ("imgproxy.presets.a", { $0.imgproxy.presets = ["a": "w:x"] }),
        ]
        for (setting, change) in cases {
            var options = CompatibleURLOptions()
            change(&options)
            #expect(options.mistake?.setting == setting)
        }
    }

    /// Sources below a base URL cannot leave it.
    @Test(
        arguments: [
            ("cat.jpg", "https://i.example/p/cat.jpg"), ("/cat.jpg", "https://i.example/p/cat.jpg"),
            ("a%252Fb.jpg", "https://i.example/p/a%2Fb.jpg"),
            ("https://i.example/p/x.jpg", "https://i.example/p/x.jpg"),
            ("http://evil.example/x", "https://i.example/p/http://evil.example/x"),
            ("@evil.example/x", "https://i.example/p/@evil.example/x"),
            ("../x", nil), ("a/../../x", nil), ("%2e%2e/x", nil), ("a/%252e%252e/x", nil), ("a%5c..%5cx", nil),
            ("./x", nil),
            ("", nil),
        ] as [(String, String?)])
    func sourcesStayBelowTheBase(_ image: String, _ source: String?) throws {
        var options = CompatibleURLTests.options
        options.thumbor.baseURL = "https://i.example/p"
        guard let source else {
            #expect(Self.kind("thumbor", "/unsafe/1x1/\(image)", options) == .badRequest)
            return
        }
        let image = try CompatibleURLTests.parse("thumbor", "/unsafe/1x1/\(image)", options)
        #expect(String(decoding: image.draft["source"] ?? [], as: UTF8.self) == "\"\(source)\"")
    }

    @Test func sourcesWithoutSchemeHaveTheDefault() throws {
        for (grammar, image, source) in [
            ("thumbor", "a.example/b.jpg", "http://a.example/b.jpg"),
            ("imagor", "a.example/b.jpg", "https://a.example/b.jpg"),
            ("thumbor", "a.example:8080/b.jpg", "http://a.example:8080/b.jpg"),
            ("imagor", "a.example/caf%C3%A9%20b.jpg", "https://a.example/caf%C3%A9%20b.jpg"),
        ] {
            let image = try CompatibleURLTests.parse(grammar, "/unsafe/1x1/\(image)")
            #expect(String(decoding: image.draft["source"] ?? [], as: UTF8.self) == "\"\(source)\"")
        }
    }

    @Test func hostilePathsAreRejectedQuickly() {
        let deep = String(repeating: "(", count: 20_000)
        let slashes = String(repeating: "/", count: 20_000)
        let colons = String(repeating: ":", count: 20_000)
        for path in [
            deep, slashes, colons, "w\(colons)/plain/a", "rs:fit\(colons)/plain/a", "filters:\(deep)/a",
            "filters:a\(colons)/a",
        ] {
            for grammar in ["imgproxy", "thumbor", "imagor"] {
                // A text that can be the host of an image is rejected by the decoder of jobs.
                guard let image = try? CompatibleURLTests.parse(grammar, "/unsafe/\(path)") else { continue }
                #expect(throws: InvalidJobError.self) {
                    try ValidatedJob(image.draft, fallbackID: "a", by: JobDecoder())
                }
            }
        }
    }

    @Test func onlyPresetsAreAcceptedIfSet() throws {
        var options = CompatibleURLTests.options
        options.imgproxy.onlyPresets = true
        options.imgproxy.presets["default"] = "q:50"
        let image = try CompatibleURLTests.parse(
            "imgproxy", "/_/thumb:sharp/plain/http://a.example/b.jpg@webp", options)
        #expect(image.draft["quality"] == "90".utf8.map(\.self) && image.draft["width"] != nil)
        #expect(Self.kind("imgproxy", "/_/thumb/w:10/plain/http://a.example/b.jpg", options) == .badRequest)
        // Other names are presets of Halcyon, whose quality applies.
        let own = try CompatibleURLTests.parse("imgproxy", "/_/card/plain/http://a.example/b.jpg", options)
        #expect(String(decoding: own.draft["preset"] ?? [], as: UTF8.self) == #""card""# && own.qualities == nil)
        #expect(Self.kind("imgproxy", "/_/card:hero/plain/http://a.example/b.jpg", options) == .badRequest)
    }

    @Test(arguments: [
        ("cat", "image/webp", #"attachment; filename="cat.webp""#),
        ("cat.jpg", "image/jpeg", #"attachment; filename="cat.jpg""#),
        ("a\"b", "image/png", #"attachment; filename="a_b.png"; filename*=UTF-8''a%22b.png"#),
        ("café", "image/png", #"attachment; filename="caf_.png"; filename*=UTF-8''caf%C3%A9.png"#),
    ])
    func dispositionsAreEscaped(_ name: String, _ type: String, _ header: String) {
        #expect(ContentDisposition(name: name, isAttachment: true).header(mediaType: type) == header)
    }

    @Test(arguments: [
        ("https://a.example/b/cat.jpg?x=/y", "cat"), ("https://a.example/b%20c.tar.gz", "b c.tar"),
        ("https://a.example/", "a"),
        ("https://a.example/%0A.jpg", "image"), ("https://a.example/%2F", "image"),
    ])
    func fileNamesAreThoseOfTheSource(_ source: String, _ name: String) {
        #expect(ContentDisposition.name(of: source) == name)
    }
}
