import HTTPServer
import HalcyonCoding
import Testing

@testable import HalcyonGateway

/// Jobs parsed from query parameters.
@Suite struct RenderQueryTests {
    private static func json(_ items: [(String, String)]) throws -> String {
        let query = try RenderQuery(items.map { HTTPServer.QueryItem($0.0, $0.1) })
        return String(decoding: query.draft.json, as: UTF8.self)
    }

    @Test(
        arguments: [
            ("width", "400", "400"), ("screenScale", "1.5", "1.5"), ("upscale", "false", "false"),
            ("format", "webp", #""webp""#),
            ("background", "#fff", ##""#fff""##), ("background", "true", #""true""#), ("tenant", "7", #""7""#),
            ("cropRect", "0.5,0,0.5,1", #"{"x":0.5,"y":0.0,"width":0.5,"height":1.0}"#),
            ("cropRect", "0.5,0", #""0.5,0""#),
            ("cropRect", "40,30,600,400,pixels", #"{"x":40.0,"y":30.0,"width":600.0,"height":400.0,"unit":"pixels"}"#),
            ("cropRect", "40,30,600,400,points", #""40,30,600,400,points""#),
            ("gravity", "0.25,0.75", #"{"x":0.25,"y":0.75}"#), ("gravity", "attention", #""attention""#),
            ("sizer", "natural", #""natural""#),
            ("sizer", #"{"aspectScaleDownByWidth":6}"#, #"{"aspectScaleDownByWidth":6}"#),
            ("processors", #"["flip"]"#, #"["flip"]"#), ("tags", "a,b", #"["a","b"]"#),
            ("tags", #"["a,b"]"#, #"["a,b"]"#),
            ("width", #"4"x"#, #""4\"x""#), ("width", "", #""""#), ("width", "{", #""{""#),
        ] as [(String, String, String)])
    func mapsParametersToJobFields(_ name: String, _ value: String, _ json: String) throws {
        #expect(
            try Self.json([("source", "initials:J"), (name, value)]) == #"{"source":"initials:J","\#(name)":\#(json)}"#)
    }

    @Test(arguments: [
        ("https://a.example/x?y=1&z=2", #""https://a.example/x?y=1&z=2""#), ("7", #""7""#),
        (#"{"initials":"J"}"#, #"{"initials":"J"}"#),
    ])
    func parsesSourceAsStringUnlessObject(_ value: String, _ json: String) throws {
        #expect(try Self.json([("source", value)]) == #"{"source":\#(json)}"#)
    }

    @Test func omitsSignatureAndWaitParameters() throws {
        #expect(
            try Self.json([("source", "a:b"), ("expires", "1"), ("keyId", "k"), ("signature", "s"), ("wait", "3")])
                == #"{"source":"a:b"}"#)
    }

    @Test(
        arguments: [
            ([("width", "1")], "missing parameter source"),
            ([("source", "a"), ("source", "b")], "source is given twice"),
            ([("source", "a"), ("id", "x")], "unknown parameter id; parameters have the names of job fields"),
            (
                [("source", "a"), ("webhook", "x")],
                "unknown parameter webhook; parameters have the names of job fields"
            ),
            ([("source", "a"), ("wait", "-1")], "wait must be a number of seconds, such as 10"),
            ([("source", "a"), ("wait", "inf")], "wait must be a number of seconds, such as 10"),
        ] as [([(String, String)], String)])
    func rejectsInvalidParametersWithDetail(_ items: [(String, String)], _ detail: String) {
        let problem = #expect(throws: Problem.self) { try Self.json(items) }
        #expect(problem?.kind == .badRequest && problem?.detail == detail)
    }
}
