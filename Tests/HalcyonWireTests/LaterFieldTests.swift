import HalcyonModel
import HalcyonWire
import Testing

/// Fields that this version cannot follow: what happens anyway may be asked for, more is refused in clear words.
@Suite struct LaterFieldTests {
    static let names = [
        "tags", "headers", "slot", "generation", "webhook",
    ]

    @Test(arguments: names)
    func nullAsksForNothing(name: String) throws {
        let plain = try read("")
        let job = try read(#""\#(name)":null"#)
        #expect(job.variant == plain.variant)
    }

    @Test(arguments: [
        #""tags":[]"#, #""headers":{}"#,
    ])
    func defaultsAreTaken(members: String) throws {
        #expect(try read(members).variant == read("").variant)
    }

    @Test(arguments: [
        #""tags":["a"]"#, #""headers":{"Accept":"image/webp"}"#,
        #""slot":"cell""#, #""generation":3"#, #""webhook":"https://example.org/done""#,
    ])
    func anythingElseIsRefusedInClearWords(members: String) throws {
        for isStrict in [true, false] {
            let failure = try #require(refusal(members, by: JobReader(isStrict: isStrict))).failure
            let name = members.split(separator: "\"")[0]
            #expect(failure.code == .invalidJob)
            #expect(failure.message == "\(name): is not supported by this version of Halcyon")
        }
    }

    @Test(arguments: names)
    func theyAreNotUnknown(name: String) throws {
        let message = #"{"source":"http://h/a","\#(name)":null}"#
        #expect(try read(message: message, by: JobReader()).unknownFields == [])
    }
}
