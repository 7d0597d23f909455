import HalcyonCoding
import HalcyonModel
import Testing

/// The fields `metadata`, `placeholder` and `altText`, which events return.
@Suite struct PassthroughMetadataTests {
    @Test(arguments: [
        ("[null]", "[null]"), (#""é \" \n""#, #""é \" \n""#), ("[1, 2.5, -3]", "[1,2.5,-3]"),
        (#"{ "b": {}, "a": [ ] }"#, #"{"b":{},"a":[]}"#), ("1e2", "100.0"),
        ("9223372036854775807", "9223372036854775807"),
        (#"{"a":1,"a":2}"#, #"{"a":1,"a":2}"#),
    ])
    func preservesValuesAsCompactJSON(json: String, echo: String) throws {
        for field in ["metadata", "placeholder", "altText"] {
            let job = try read(#""\#(field)":\#(json)"#)
            let echoes = [
                "metadata": job.echo.metadata, "placeholder": job.echo.placeholder, "altText": job.echo.altText,
            ]
            #expect(echoes[field]! == Array(echo.utf8))
            #expect(echoes.values.filter { $0 != nil }.count == 1)
        }
    }

    @Test func limitsCompactValuesTo16KiB() throws {
        let spaces = String(repeating: " ", count: 30_000)
        let most = String(repeating: "x", count: 16_384 - 2)
        #expect(try read(#""metadata":\#(spaces)"\#(most)"\#(spaces)"#).echo.metadata?.count == 16_384)
        let reason = try #require(rejection(#""metadata":"\#(most)x""#)).failure.message
        #expect(reason == "metadata: 16385 bytes, and at most 16384 are allowed")
        // The limit is in bytes, not characters.
        #expect(rejection(#""altText":"\#(String(repeating: "é", count: 9000))""#) != nil)
    }

    @Test func limitsNestingDepth() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + "1" + String(repeating: "]", count: depth)
        }
        #expect(rejection(#""metadata":\#(nested(31))"#) == nil)
        #expect(rejection(#""metadata":\#(nested(32))"#) != nil)
        #expect(rejection(#""metadata":\#(nested(100_000))"#) != nil)
    }

    @Test func eventContainsTheValues() throws {
        let job = try read(#""metadata":{"n":[1,null]},"altText":"a cat""#)
        let event = Event(
            id: "e", time: 0, subject: job.source.text, jobID: job.id, echo: job.echo, traceparent: nil, body: .started)
        #expect(
            String(decoding: event.json, as: UTF8.self).hasSuffix(
                #""data":{"job":{"id":"halcyon.jobs-0-7","metadata":{"n":[1,null]},"altText":"a cat"}}}"#))
    }
}
