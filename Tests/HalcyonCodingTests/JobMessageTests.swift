import HalcyonCoding
import HalcyonModel
import TestSupport
import Testing

/// Decoding of whole messages: malformed input, and fields recovered from invalid jobs.
@Suite struct JobMessageTests {
    @Test(arguments: [
        "", " \n", "\u{0}", "rubbish", "{", "{}}", "nul", "[]", "[{}]", "null", "7", "\"{}\"",
        #"{"source":"http://h/a",}"#, #"{"source":"http://h/a"} {}"#, "\u{feff}{\"source\":\"http://h/a\"}",
    ])
    func rejectsMessagesThatAreNotObjects(message: String) throws {
        let rejected = try #require(rejection(message: message))
        #expect(rejected.failure.code == .invalidJob)
        #expect(rejected.failure.message.hasPrefix("the message: "), "\(rejected.failure.message)")
        #expect(rejected.id == nil && rejected.source == nil && rejected.echo == Job.PassthroughMetadata())
    }

    @Test func failuresOfCorruptedMessagesHaveAReason() throws {
        var generator = SeededNumbers(seed: 4)
        let good = Array(#"{"id":"a","source":"https://example.org/cat.jpg","width":400,"metadata":["é"]}"#.utf8)
        for _ in 0..<5000 {
            var bytes = good
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            // Either outcome is valid. A rejection has a reason.
            do {
                _ = try JobDecoder().read(bytes, defaultID: "0")
            } catch {
                #expect(!error.failure.message.isEmpty)
            }
        }
        #expect(throws: InvalidJobError.self) { try JobDecoder().read([0, 0xff, 0xfe, 0x80], defaultID: "0") }
    }

    @Test(arguments: [
        #"{"source":"http://h/a","tenant":"acme"}"#, #"{"\u0074enant":"acme","source":"http://h/a"}"#,
        #"{"source":"http://h/a","\u0074\u0065\u006e\u0061\u006e\u0074":"acme"}"#,
        #"{"source":"http://h/a","tenan\u0074":"\u0061cme"}"#,
    ])
    func findsTheTenantWhateverTheSpellingOfItsName(message: String) throws {
        let bytes = Array(message.utf8)
        #expect(JobDecoder().tenant(of: bytes) == "acme")
        let job = try JobDecoder().read(bytes, defaultID: "0").job
        #expect(job.tenant == "acme")
    }

    @Test func limitsMessageSize() throws {
        let two = #"{"id":"a","source":"http://h/a","metadata":"\#(String(repeating: "x", count: 2 << 20))"}"#
        let rejected = try #require(rejection(message: two))
        #expect(rejected.failure.message == "the message: \(two.utf8.count) bytes, and at most 1048576 are allowed")
        let message = #"{"source":"http://h/a"}"#
        #expect(rejection(message: message, by: JobDecoder(maximumBytes: message.utf8.count)) == nil)
        #expect(rejection(message: message, by: JobDecoder(maximumBytes: message.utf8.count - 1)) != nil)
    }

    @Test(arguments: [
        (#"{"width":4}"#, JobErrorCode.invalidJob, "source: is missing: say what to load"),
        (#"{"source":""}"#, .invalidJob, "source: expected an absolute URL"),
        (#"{"source":null}"#, .invalidJob, "source: is missing: say what to load"),
        (
            #"{"source":{"gallery":"AAAA","cacheKey":"a"}}"#, .unsupportedSource,
            "source: no provider for sources of this"
        ),
        (#"{"source":{}}"#, .unsupportedSource, "source: no provider for sources of this kind; expected a URL"),
        (#"{"source":"ftp://h/a"}"#, .unsupportedSource, "source: no provider for ftp: URLs"),
        (#"{"source":"ftp://h/passwd"}"#, .unsupportedSource, "source: no provider for ftp: URLs"),
        (#"{"source":"http://h/a b"}"#, .invalidJob, "source: the URL contains spaces"),
    ])
    func rejectsMissingOrUnsupportedSources(message: String, code: JobErrorCode, reason: String) throws {
        let failure = try #require(rejection(message: message)).failure
        #expect(failure.code == code)
        #expect(failure.message.hasPrefix(reason), "\(failure.message)")
    }

    @Test(arguments: ["width", "id", "source", "metadata", "anything", "tags"])
    func rejectsDuplicateNames(name: String) throws {
        let message = #"{"source":"http://h/a","\#(name)":1,"\#(name)":1}"#
        let reason = try #require(rejection(message: message, by: JobDecoder())).failure.message
        #expect(reason == "\(name): duplicate name")
    }

    @Test func rejectsUnknownFieldsInStrictModeOnly() throws {
        let members = #""widht":4,"x":{"y":1},"width":4"#
        #expect(try #require(rejection(members)).failure.message == "widht: unknown field")
        let message = #"{"source":"http://h/a",\#(members)}"#
        let reading = try read(message: message, by: JobDecoder(isStrict: false))
        #expect(reading.unknownFields == ["widht", "x"])
        #expect(reading.job.variant.sizing.goal == .sizer(.aspectScaleDownByWidth(4)))
        #expect(try read(message: #"{"source":"http://h/a"}"#).unknownFields == [])
    }

    @Test func matchesNamesCaseSensitivelyAfterUnescaping() throws {
        let reading = try read(message: #"{"source":"http://h/a","Width":4,"w\u0069dth":5}"#, by: JobDecoder())
        #expect(reading.unknownFields == ["Width"])
        #expect(reading.job.variant.sizing.goal == .sizer(.aspectScaleDownByWidth(5)))
    }

    @Test func invalidJobKeepsItsIDSourceAndMetadata() throws {
        // Fields after the invalid one are read as well.
        let members = #""width":-4,"id":"j","metadata":{"n":1},"altText":"a","placeholder":[]"#
        let rejected = try #require(rejection(members))
        #expect(rejected.failure.message.hasPrefix("width: "))
        #expect(rejected.id == "j")
        #expect(rejected.source == "https://example.org/cat.jpg")
        #expect(
            rejected.echo
                == Job.PassthroughMetadata(
                    metadata: Array(#"{"n":1}"#.utf8), placeholder: Array("[]".utf8), altText: Array(#""a""#.utf8)))
    }

    @Test func invalidJobDropsInvalidIDSourceAndMetadata() throws {
        let long = String(repeating: "x", count: Job.PassthroughMetadata.longest)
        let members = #""width":-4,"id":"","metadata":"\#(long)","altText":7"#
        let rejected = try #require(rejection(members))
        #expect(rejected.id == nil)
        #expect(rejected.echo == Job.PassthroughMetadata(altText: Array("7".utf8)))
        let url = "http://h/" + String(repeating: "x", count: WebURL.longest)
        #expect(try #require(rejection(message: #"{"id":"j","source":"\#(url)"}"#)).source == nil)
        #expect(try #require(rejection(message: #"{"id":"j","source":""}"#)).source == nil)
    }

    @Test func duplicateIDKeepsTheFirst() throws {
        #expect(try #require(rejection(#""id":"a","id":"b""#)).id == "a")
    }
}
