import HalcyonCoding
import HalcyonModel
import JSON
import Testing

/// Sources other than web URLs.
@Suite struct SourceFieldTests {
    static func source(_ json: String) throws -> Source { try read(message: #"{"source":\#(json)}"#).job.source }

    @Test func readsInitialsFromStringOrObject() throws {
        let drawn = Source.initials(try Initials("JD"))
        #expect(try Self.source(#""initials:JD""#) == drawn)
        #expect(try Self.source(#"{"initials":"JD"}"#) == drawn)
        #expect(try Self.source(#"{"initials":"JD","background":null,"foreground":null}"#) == drawn)
        #expect(drawn.text == "initials:JD")
    }

    @Test func readsColorsOfInitials() throws {
        let blue = CSSColor(red: 0x33, green: 0x66, blue: 0x99)
        #expect(
            try Self.source(##"{"initials":"JD","background":"#336699","foreground":"black"}"##)
                == .initials(Initials("JD", background: blue, foreground: .black)))
        #expect(
            try SourceRequest(Self.source(##"{"initials":"JD","background":"#336699"}"##)).canonicalText
                == "halcyon-source/1\ninitials:JD #336699ff #ffffffff\n")
    }

    @Test(arguments: [
        (#""initials:""#, JobErrorCode.invalidJob, "source: expected 1 to 3 initials without spaces"),
        (#""initials:ABCD""#, .invalidJob, "source: expected 1 to 3 initials without spaces"),
        (#""initials:A B""#, .invalidJob, "source: expected 1 to 3 initials without spaces"),
        (#""initials:A\n""#, .invalidJob, "source: expected 1 to 3 initials without spaces"),
        (#""Initials:JD""#, .unsupportedSource, "source: no provider for initials: URLs"),
        (#"{"initials":7}"#, .invalidJob, "source.initials: expected a string, found a number"),
        (#"{"initials":""}"#, .invalidJob, "source: expected 1 to 3 initials without spaces"),
        (#"{"initials":"JD","colour":"red"}"#, .invalidJob, "source.colour: unknown member of an initials source"),
        (#"{"initials":"JD","background":"rde"}"#, .invalidJob, "source.background: expected a CSS color"),
        (#"{"initials":"JD","initials":"AB"}"#, .invalidJob, "source.initials: duplicate name"),
        (#"{"gallery":{"id":15}}"#, .unsupportedSource, "source: no provider for sources of this kind"),
        (
            #""gallery:15""#, .unsupportedSource,
            "source: no provider for gallery: URLs; expected http, https, file, data or s3"
        ),
        (#""file:///a/%2e%2e/b""#, .invalidJob, "source: the path must not contain .. segments"),
        (#""file:///a%2Fb""#, .invalidJob, "source: a slash must not be written as %2F"),
        (#""file:///a%00""#, .invalidJob, "source: the path contains control characters"),
        (#""file:///%C3""#, .invalidJob, "source: the path is not UTF-8"),
        (#""s3://bucket/%C3""#, .invalidJob, "source: the key is not UTF-8"),
        (#""s3://Bucket/a""#, .invalidJob, "source: invalid bucket name"),
        (#""data:;base64,AB-_""#, .invalidJob, "source: malformed base64"),
        (#""data:,""#, .invalidJob, "source: the data is empty"),
        (#"{"base64":"AAAA","cacheKey":""}"#, .invalidJob, "source: cacheKey: expected 1 to 128 characters"),
        (#"{"base64":"AAAA","key":"a"}"#, .invalidJob, "source.key: unknown member of a base64 source"),
        (#"{"url":"https://h/a","key":"a"}"#, .invalidJob, "source.key: unknown member of a URL source"),
        (#"{"url":"https://h/a","cacheKey":""}"#, .invalidJob, "source: cacheKey: expected 1 to 128 characters"),
        (#"{"url":"https://h/a","cacheKey":"a\nb"}"#, .invalidJob, "source: cacheKey: expected 1 to 128 characters"),
        (#"{"url":"file:///a","cacheKey":"a"}"#, .unsupportedSource, "source: no provider for file: URLs"),
        (#"{"video":"initials:JD"}"#, .invalidJob, "source: video: expected the source of a video, found initials:JD"),
        (#"{"video":"file:///a","seconds":-1}"#, .invalidJob, "source.seconds: expected 0.0 to 86400.0"),
        (#"{"video":"file:a"}"#, .invalidJob, "source.video: expected an absolute path"),
        (#"["initials:JD"]"#, .invalidJob, "source: expected a string, found an array"),
    ])
    func rejectsInvalidSources(json: String, code: JobErrorCode, message: String) throws {
        let failure = try #require(rejection(message: #"{"source":\#(json)}"#)).failure
        #expect(failure.code == code)
        #expect(failure.message.hasPrefix(message), "\(failure.message)")
    }

    @Test func invalidJobKeepsItsSource() throws {
        #expect(try #require(rejection(message: #"{"source":{"initials":"JD"},"width":-1}"#)).source == "initials:JD")
        #expect(try #require(rejection(message: #"{"source":{"gallery":"http://h/a"},"id":"a"}"#)).source == nil)
        let data = #""data:image/png;base64,\#(String(repeating: "A", count: 8))""#
        #expect(
            try #require(rejection(message: #"{"source":\#(data),"width":-1}"#)).source?.hasPrefix("data:sha256=")
                == true
        )
    }

    @Test(arguments: [
        (#""file:///srv/./a%20b.jpg""#, "file:///srv/./a%20b.jpg", "file:/srv/a b.jpg"),
        (#""s3://pictures/a%20b?versionId=1""#, "s3://pictures/a%20b?versionId=1", "s3:pictures/a%20b?versionId=1"),
        (#""data:image/png,abc""#, abc, abc), (#""data:;base64,YWJj""#, abc, abc), (#"{"base64":"YWJj"}"#, abc, abc),
        (#"{"base64":"YWJj","cacheKey":"é 1"}"#, "data:key=é 1", "data:key=é 1"),
        (
            #"{"video":"https://Example.org/a.mp4?b#c","seconds":1.50}"#, "https://Example.org/a.mp4?b#t=1.5",
            "video:1.5 url:https://example.org/a.mp4?b"
        ),
        (#"{"video":{"base64":"YWJj"}}"#, "\(abc)#t=0", "video:0 \(abc)"),
    ])
    func derivesTextAndCacheKey(json: String, text: String, key: String) throws {
        let source = try Self.source(json)
        #expect(source.text == text)
        #expect(source.cacheKey == key)
    }

    /// The SHA-256 of an example in FIPS 180-4.
    private static let abc = "data:sha256=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

    @Test(arguments: [
        #""data:,a%62c""#, #""data:;charset=utf-8;BASE64,YWJj""#, #""data:;base64,YWJ%6A""#, #"{"base64":"YWJj"}"#,
    ])
    func decodesDataOfAnyEncoding(json: String) throws {
        guard case .data(let data) = try Self.source(json) else { throw JSONError(.invalid, "no data: \(json)") }
        #expect(data.bytes == Array("abc".utf8))
    }

    @Test func readsCustomSourcesFromStringOrObject() throws {
        var reader = JobDecoder(isStrict: true)
        reader.customSources = ["gallery", "http"]
        reader.customSourceKey = { name, reference throws(JobError) in
            guard reference != "?" else { throw JobError(.invalidJob, "expected a number") }
            return "\(name)/\(reference)"
        }
        func source(_ json: String) throws -> Source {
            try read(message: #"{"source":\#(json)}"#, by: reader).job.source
        }
        #expect(try source(#""gallery:a:b\u0301""#).cacheKey == "custom:gallery gallery/a:b\u{301}")
        #expect(try source(#""gallery:a:b""#).text == "gallery:a:b")
        #expect(try source(#"{"gallery":{"b":2,"a":[1]}}"#).cacheKey == #"custom:gallery gallery/{"a":[1],"b":2}"#)
        #expect(try source(#"{"video":"gallery:1","seconds":2}"#).cacheKey == "video:2 custom:gallery gallery/1")
        let overlay = #"{"source":"http://h/","processors":[{"overlay":{"source":"gallery:7"}}]}"#
        #expect(try read(message: overlay, by: reader).job.variant.assets.map(\.text) == ["gallery:7"])
        for (json, message) in [
            (#""gallery:?""#, "source: gallery: expected a number"),
            (#""gallery:a\n""#, "source: gallery: the provider returned an invalid key"),
            (#"{"gallery":7}"#, "source.gallery: expected an object of parameters"),
            (#"{"gallery":{},"other":{}}"#, "source: no provider for sources of this kind"),
        ] {
            let failure = try #require(rejection(message: #"{"source":\#(json)}"#, by: reader)).failure
            #expect(failure.code == (json.contains("other") ? .unsupportedSource : .invalidJob))
            #expect(failure.message.hasPrefix(message), "\(failure.message)")
        }
    }
}
