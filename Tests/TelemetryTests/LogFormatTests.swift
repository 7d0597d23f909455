import Formats
import JSON
import Telemetry
import Testing

@Suite struct LogFormatTests {
    /// 2026-11-21T10:35:00.250Z
    static let time = Timestamp(milliseconds: 1_795_257_300_250)

    func line(_ format: LogFormat, _ level: LogLevel, _ message: String, _ fields: LogMetadata = [:]) -> String {
        String(
            decoding: format.line(LogRecord(time: Self.time, level: level, message: message, fields: fields)),
            as: UTF8.self)
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1_795_257_300_250, "2026-11-21T10:35:00.250Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"), (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
        ] as [(Int64, String)]) func writesTimesAsRFC3339(milliseconds: Int64, text: String)
    {
        #expect(Timestamp(milliseconds: milliseconds).rfc3339 == text)
    }

    @Test func writesJSONLines() {
        #expect(
            line(
                .json, .info, "image \"ready\"\n",
                ["job": "a\u{1b}b", "bytes": 10, "ms": 1.5, "warm": true, "none": nil as Int?])
                == #"{"ts":"2026-11-21T10:35:00.250Z","level":"info","message":"image \"ready\"\n","job":"a\u001bb","bytes":10,"ms":1.5,"warm":true}"#
                + "\n")
    }

    @Test func everyJSONLineIsOneValidObject() throws {
        let text = line(
            .json, .error, "x",
            [
                "ts": 1, "level": 2, "message": 3, "nan": Double.nan, "far": Double.infinity,
                "took": Duration.milliseconds(1.5), "list": ["a", "b\n"], "numbers": [1, 2], "empty": [] as [String],
            ])
        #expect(text.filter { $0 == "\n" }.count == 1)
        let object = try JSON.parse(Array(text.utf8), maximumSize: 1000)
        try object.forEachMember { _, _ in }
        #expect(try object.member("ts_")?.integer() == 1)
        #expect(try object.member("message_")?.integer() == 3)
        #expect(try object.member("nan")?.string() == "nan")
        #expect(try object.member("took")?.double() == 0.0015)
        #expect(text.hasSuffix(#","took":0.0015,"list":["a","b\n"],"numbers":[1,2],"empty":[]}"# + "\n"))
    }

    /// Numbers without exponent and unit, which people can read and programs can add up.
    @Test(
        arguments: [
            (.nanoseconds(30_500), "0.0000305"), (.nanoseconds(-1), "-0.000000001"), (.zero, "0.0"),
            (.seconds(30), "30.0"),
            (.milliseconds(1234), "1.234"), (.seconds(31_536_000), "31536000.0"),
        ] as [(Duration, String)])
    func durationsAreSeconds(took: Duration, text: String) {
        #expect(line(.json, .info, "x", ["took": took]).hasSuffix(",\"took\":\(text)}\n"))
        #expect(line(.text(isColoured: false), .info, "x", ["took": took]).hasSuffix(" took=\(text)\n"))
    }

    @Test func writesReadableText() {
        #expect(
            line(
                .text(isColoured: false), .info, "image ready", ["job": "a b", "bytes": 10, "key": "k-1", "empty": ""])
                == "10:35:00.250 INFO     image ready job=\"a b\" bytes=10 key=k-1 empty=\"\"\n")
        #expect(
            line(.text(isColoured: true), .error, "lost", ["job": 1])
                == "\u{1b}[2m10:35:00.250\u{1b}[0m \u{1b}[31mERROR\u{1b}[0m    lost \u{1b}[2mjob=\u{1b}[0m1\n")
    }

    @Test func writesListsInBrackets() {
        #expect(
            line(
                .text(isColoured: false), .info, "x",
                ["list": ["jobs-0", "a b"], "numbers": [1.5, 2], "empty": [] as [Int]])
                == "10:35:00.250 INFO     x list=[jobs-0,\"a b\"] numbers=[1.5,2.0] empty=[]\n")
    }

    /// Bidirectional and invisible characters can make a line look like another one.
    @Test(arguments: [
        "202e", "202a", "2066", "2069", "200f", "61c", "200b", "200d", "ad", "feff", "2028", "2029", "e0041",
    ])
    func escapesBidirectionalAndInvisibleCharacters(code: String) throws {
        let scalar = try #require(UInt32(code, radix: 16).flatMap(Unicode.Scalar.init))
        let text = line(.text(isColoured: false), .info, "a\(scalar)b", ["x": "gpj\(scalar).exe"])
        #expect(text == "10:35:00.250 INFO     a\\u{\(code)}b x=gpj\\u{\(code)}.exe\n")
    }

    @Test func escapesTerminalControlSequences() {
        let text = line(
            .text(isColoured: false), .info, "a\u{1b}[2Jb\nc", ["x": "\u{9b}31m\r\n", "q": "say \"hi\" \\"])
        #expect(text == #"10:35:00.250 INFO     a\u{1b}[2Jb\nc x="\u{9b}31m\u{d}\n" q="say \"hi\" \\""# + "\n")
    }
}
