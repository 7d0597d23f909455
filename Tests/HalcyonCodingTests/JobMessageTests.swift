import HalcyonCoding
import HalcyonModel
import Testing

/// Messages as a whole: what is no job at all, and what can still be said of it.
@Suite struct JobMessageTests {
    @Test(arguments: [
        "", " \n", "\u{0}", "rubbish", "{", "{}}", "nul", "[]", "[{}]", "null", "7", "\"{}\"",
        #"{"source":"http://h/a",}"#, #"{"source":"http://h/a"} {}"#, "\u{feff}{\"source\":\"http://h/a\"}",
    ])
    func whatIsNoObjectIsNoJob(message: String) throws {
        let refused = try #require(refusal(message: message))
        #expect(refused.failure.code == .invalidJob)
        #expect(refused.failure.message.hasPrefix("the message: "), "\(refused.failure.message)")
        #expect(refused.id == nil && refused.source == nil && refused.echo == Job.PassthroughMetadata())
    }

    @Test func rubbishBytesAreNoJob() throws {
        var generator = SeededGenerator(seed: 4)
        let good = Array(#"{"id":"a","source":"https://example.org/cat.jpg","width":400,"metadata":["é"]}"#.utf8)
        for _ in 0..<5000 {
            var bytes = good
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            // Taken or refused, and always with a reason.
            do {
                _ = try JobDecoder().read(bytes, defaultID: "0")
            } catch {
                #expect(!error.failure.message.isEmpty)
            }
        }
        #expect(throws: InvalidJobError.self) { try JobDecoder().read([0, 0xff, 0xfe, 0x80], defaultID: "0") }
    }

    @Test func aMessageHasALimit() throws {
        let two = #"{"id":"a","source":"http://h/a","metadata":"\#(String(repeating: "x", count: 2 << 20))"}"#
        let refused = try #require(refusal(message: two))
        #expect(refused.failure.message == "the message: \(two.utf8.count) bytes, and at most 1048576 are allowed")
        let message = #"{"source":"http://h/a"}"#
        #expect(refusal(message: message, by: JobDecoder(maximumBytes: message.utf8.count)) == nil)
        #expect(refusal(message: message, by: JobDecoder(maximumBytes: message.utf8.count - 1)) != nil)
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
    func aJobNeedsASourceThatIsServed(message: String, code: JobErrorCode, reason: String) throws {
        let failure = try #require(refusal(message: message)).failure
        #expect(failure.code == code)
        #expect(failure.message.hasPrefix(reason), "\(failure.message)")
    }

    @Test(arguments: ["width", "id", "source", "metadata", "anything", "tags"])
    func noNameStandsTwice(name: String) throws {
        let message = #"{"source":"http://h/a","\#(name)":1,"\#(name)":1}"#
        let reason = try #require(refusal(message: message, by: JobDecoder())).failure.message
        #expect(reason == "\(name): duplicate name")
    }

    @Test func unknownFieldsAreAnErrorInStrictModeAlone() throws {
        let members = #""widht":4,"x":{"y":1},"width":4"#
        #expect(try #require(refusal(members)).failure.message == "widht: unknown field")
        let message = #"{"source":"http://h/a",\#(members)}"#
        let reading = try read(message: message, by: JobDecoder(isStrict: false))
        #expect(reading.unknownFields == ["widht", "x"])
        #expect(reading.job.variant.sizing.goal == .sizer(.aspectScaleDownByWidth(4)))
        #expect(try read(message: #"{"source":"http://h/a"}"#).unknownFields == [])
    }

    @Test func namesAreTakenByTheirBytes() throws {
        let reading = try read(message: #"{"source":"http://h/a","Width":4,"w\u0069dth":5}"#, by: JobDecoder())
        #expect(reading.unknownFields == ["Width"])
        #expect(reading.job.variant.sizing.goal == .sizer(.aspectScaleDownByWidth(5)))
    }

    @Test func aBrokenJobStillTellsWhoseItIs() throws {
        // The fault comes first: what stands behind it is found all the same.
        let members = #""width":-4,"id":"j","metadata":{"n":1},"altText":"a","placeholder":[]"#
        let refused = try #require(refusal(members))
        #expect(refused.failure.message.hasPrefix("width: "))
        #expect(refused.id == "j")
        #expect(refused.source == "https://example.org/cat.jpg")
        #expect(
            refused.echo
                == Job.PassthroughMetadata(
                    metadata: Array(#"{"n":1}"#.utf8), placeholder: Array("[]".utf8), altText: Array(#""a""#.utf8)))
    }

    @Test func whatIsNotGoodItselfIsNotRescued() throws {
        let long = String(repeating: "x", count: Job.PassthroughMetadata.longest)
        let members = #""width":-4,"id":"","metadata":"\#(long)","altText":7"#
        let refused = try #require(refusal(members))
        #expect(refused.id == nil)
        #expect(refused.echo == Job.PassthroughMetadata(altText: Array("7".utf8)))
        let url = "http://h/" + String(repeating: "x", count: WebURL.longest)
        #expect(try #require(refusal(message: #"{"id":"j","source":"\#(url)"}"#)).source == nil)
        #expect(try #require(refusal(message: #"{"id":"j","source":""}"#)).source == nil)
    }

    @Test func anIDThatStandsTwiceIsTheFirst() throws {
        #expect(try #require(refusal(#""id":"a","id":"b""#)).id == "a")
    }
}
