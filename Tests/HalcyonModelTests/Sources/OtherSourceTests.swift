import Foundation
import HalcyonModel
import Testing

/// Data, video and custom sources, and the coding of all kinds.
@Suite struct OtherSourceTests {
    private static let abc = Array("abc".utf8)

    private static func data(_ bytes: [UInt8], name: String? = nil) throws -> Source {
        if let name { return .data(try DataSource(bytes, name: name)) }
        return .data(try DataSource(bytes) { "\($0.count) bytes" })
    }

    @Test func dataSourcesAreEqualIfNamesOrHashesAreEqual() throws {
        #expect(try Self.data(Self.abc) == Self.data([1, 2, 3]))
        #expect(try Self.data(Self.abc, name: "a") == Self.data([1], name: "a"))
        #expect(try Self.data(Self.abc, name: "a") != Self.data(Self.abc, name: "b"))
        #expect(try Self.data(Self.abc).cacheKey == "data:sha256=3 bytes")
        // A name cannot be mistaken for a hash.
        #expect(try Self.data(Self.abc, name: "sha256=3 bytes").cacheKey == "data:key=sha256=3 bytes")
        #expect(throws: JobError.self) { try Self.data([]) }
        #expect(throws: JobError.self) { try Self.data([], name: "a") }
    }

    @Test func encodingOmitsTheBytes() throws {
        let source = try Self.data([UInt8](repeating: 7, count: 1 << 16))
        let coded = try JSONEncoder().encode(source)
        #expect(coded.count < 100)
        let decoded = try JSONDecoder().decode(Source.self, from: coded)
        #expect(decoded == source)
        guard case .data(let data) = decoded else {
            Issue.record("\(decoded)")
            return
        }
        #expect(data.bytes.isEmpty)
    }

    @Test func roundTripsEveryKind() throws {
        let video = Source.video(try VideoSource(try Source("s3://bucket/a"), seconds: 1.5))
        let custom = Source.custom(
            try CustomSource(name: "gallery", reference: "7") { name, reference throws(JobError) in
                "\(name) \(reference)"
            })
        let url = try WebURL("https://example.org/a?x=1")
        let rule = try #require(SourceIdentityRule("example.org?x"))
        let webs = try [url, url.named("a"), url.identified(by: [rule])].map { Source.web($0) }
        #expect(Set(webs.map(\.cacheKey)).count == 3)
        for source in try webs + [Source("file:///a%20b"), Source("s3://bucket/a%20b"), video, custom] {
            let decoded = try JSONDecoder().decode(Source.self, from: JSONEncoder().encode(source))
            #expect(decoded == source && decoded.cacheKey == source.cacheKey)
        }
    }

    @Test func videoSourceRequiresAVideoAndAValidTime() throws {
        let frame = try VideoSource(try Source("https://h/a.mp4#x"), seconds: 0.12345651)
        #expect(frame.selection == .frame(seconds: 0.123457))
        #expect(Source.video(frame).text == "https://h/a.mp4#t=0.123457")
        for seconds in [-0.5, 86_400.1, .nan, .infinity] {
            #expect(throws: JobError.self) { try VideoSource(try Source("https://h/a.mp4"), seconds: seconds) }
        }
        #expect(throws: JobError.self) { try VideoSource(try Source("initials:JD"), seconds: 0) }
        let sheet = try VideoSource(try Source("https://h/a.mp4#x"), .contactSheet(.init(columns: 3, rows: 2)))
        #expect(sheet.text == "https://h/a.mp4#contactSheet=3x2")
        #expect(Source.video(sheet).cacheKey == "video:sheet 3x2 320 url:https://h/a.mp4")
        let preview = try VideoSource(try Source("https://h/a.mp4"), .preview(.init(frames: 12, duration: 2.5)))
        #expect(Source.video(preview).text == "https://h/a.mp4#preview=12")
        #expect(Source.video(preview).cacheKey == "video:preview 12 2.5 320 url:https://h/a.mp4")
        // 2^24 pixels of squares at most.
        let input = try Source("https://h/a.mp4")
        #expect(try VideoSource(input, .contactSheet(.init(columns: 8, rows: 8, width: 512))).input == input)
        let many = #expect(throws: JobError.self) {
            try VideoSource(input, .contactSheet(.init(columns: 8, rows: 8, width: 513)))
        }
        #expect(many?.code == .invalidJob && many?.message.contains("at most 512 pixels") == true)
        #expect(throws: JobError.self) { try VideoSource(input, .preview(.init(frames: 60, width: 1024))) }
        for text in ["h264 3000", "av1", "unknown 0"] { #expect(VideoFacts(text: text)?.text == text) }
        for text in [
            "", "a b", "h264 -1", "h264 1 2", "h<264 3", "h264 99999999999999", String(repeating: "a", count: 33),
        ] {
            #expect(VideoFacts(text: text) == nil, "\(text)")
        }
        #expect(throws: JobError.self) { try VideoSource(.video(frame), seconds: 0) }
    }

    @Test(arguments: ["", "a\nb", "\u{7f}", String(repeating: "a", count: CustomSource.longest + 1)])
    func rejectsInvalidCustomKeys(key: String) {
        #expect(throws: JobError.self) {
            try CustomSource(name: "a", reference: "b") { _, _ throws(JobError) in key }
        }
    }
}
