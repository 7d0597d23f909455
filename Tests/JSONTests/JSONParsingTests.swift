import JSON
import Testing

@Suite struct JSONParsingTests {
    /// Texts with their compact form or the code of the error.
    static let texts: [(text: String, outcome: Outcome)] = [
        // Well-formed edge cases.
        ("{}", .echo("{}")),
        ("[]", .echo("[]")),
        (" \t\r\n[ ] \n", .echo("[]")),
        ("null", .echo("null")),
        ("true", .echo("true")),
        ("\"\"", .echo("\"\"")),
        ("0", .echo("0")),
        ("-0", .echo("0")),
        ("-0.0", .echo("-0.0")),
        ("1.0", .echo("1.0")),
        ("1e2", .echo("100.0")),
        ("1E+2", .echo("100.0")),
        ("1e-400", .echo("0.0")),
        ("0.1", .echo("0.1")),
        ("123456789.123456789", .echo("123456789.12345679")),
        ("9223372036854775807", .echo("9223372036854775807")),
        ("-9223372036854775808", .echo("-9223372036854775808")),
        ("18446744073709551615", .echo("18446744073709551615")),
        ("1.7976931348623157e308", .echo("1.7976931348623157e+308")),
        ("5e-324", .echo("5e-324")),
        ("[1,[2,{\"a\":[]}],\"b\",null]", .echo("[1,[2,{\"a\":[]}],\"b\",null]")),
        ("{\"b\":1,\"a\":2,\"b\":3}", .echo("{\"b\":1,\"a\":2,\"b\":3}")),
        ("{\"\":0}", .echo("{\"\":0}")),
        (#""\u0041\/\b\f\n\r\t\"\\""#, .echo(#""A/\u0008\u000c\n\r\t\"\\""#)),
        (#""\u0000\u001f""#, .echo(#""\u0000\u001f""#)),
        (#""\ud83d\ude00""#, .echo("\"😀\"")),
        (#""\u2028\u00e9""#, .echo("\"\u{2028}é\"")),
        ("\"\u{7f}\u{2028}\u{10ffff}\"", .echo("\"\u{7f}\u{2028}\u{10ffff}\"")),
        // Not JSON.
        ("", .rejection(.malformed)),
        (" \n ", .rejection(.malformed)),
        ("{", .rejection(.malformed)),
        ("}", .rejection(.malformed)),
        ("[1,]", .rejection(.malformed)),
        ("[1 2]", .rejection(.malformed)),
        ("[1}", .rejection(.malformed)),
        ("{\"a\":1,}", .rejection(.malformed)),
        ("{\"a\" 1}", .rejection(.malformed)),
        ("{\"a\":}", .rejection(.malformed)),
        ("{\"a\"}", .rejection(.malformed)),
        ("{a:1}", .rejection(.malformed)),
        ("{'a':1}", .rejection(.malformed)),
        ("{1:1}", .rejection(.malformed)),
        ("{\"a\":1 \"b\":2}", .rejection(.malformed)),
        ("{} {}", .rejection(.malformed)),
        ("{}x", .rejection(.malformed)),
        ("{}\0", .rejection(.malformed)),
        ("[] // comment", .rejection(.malformed)),
        ("/**/[]", .rejection(.malformed)),
        ("True", .rejection(.malformed)),
        ("tru", .rejection(.malformed)),
        ("nullx", .rejection(.malformed)),
        ("[nul]", .rejection(.malformed)),
        ("NaN", .rejection(.malformed)),
        ("[NaN]", .rejection(.malformed)),
        ("[Infinity]", .rejection(.malformed)),
        ("[-Infinity]", .rejection(.unreadableNumber)),
        ("[1.]", .rejection(.unreadableNumber)),
        ("[01]", .rejection(.unreadableNumber)),
        ("[-]", .rejection(.unreadableNumber)),
        ("[1e]", .rejection(.unreadableNumber)),
        ("[0x10]", .rejection(.unreadableNumber)),
        ("[1_000]", .rejection(.unreadableNumber)),
        ("[1e400]", .rejection(.unreadableNumber)),
        ("[18446744073709551616]", .rejection(.unreadableNumber)),
        ("[-9223372036854775809]", .rejection(.unreadableNumber)),
        ("\"abc", .rejection(.malformed)),
        ("\"a\nb\"", .rejection(.malformed)),
        ("\"a\u{1}b\"", .rejection(.malformed)),
        (#""\x41""#, .rejection(.malformed)),
        (#""\u12""#, .rejection(.malformed)),
        (#""\u12G4""#, .rejection(.malformed)),
        (#""\ud800""#, .rejection(.malformed)),
        (#""\ud800\u0041""#, .rejection(.malformed)),
        (#""\udc00""#, .rejection(.malformed)),
        (#""\ude00\ud83d""#, .rejection(.malformed)),
        ("\u{FEFF}{}", .rejection(.malformed)),
    ]

    enum Outcome: Equatable, Sendable {
        case echo(String)
        case rejection(JSONError.Code)
    }

    static func outcome(of bytes: [UInt8], maximumDepth: Int = 32) -> Outcome {
        do {
            return .echo(
                String(
                    decoding: try JSON.parse(bytes, maximumSize: 1 << 20, maximumDepth: maximumDepth).bytes,
                    as: UTF8.self))
        } catch {
            return .rejection(error.code)
        }
    }

    @Test(arguments: texts) func parsesOrRejects(text: String, outcome: Outcome) {
        #expect(Self.outcome(of: Array(text.utf8)) == outcome)
    }

    /// Old releases of simdjson report a missing value, and new ones an invalid number.
    @Test(arguments: ["[,1]", "[+1]", "[.5]"]) func rejectsInvalidStartOfAValue(text: String) {
        let outcome = Self.outcome(of: Array(text.utf8))
        #expect(outcome == .rejection(.malformed) || outcome == .rejection(.unreadableNumber))
    }

    @Test(
        arguments: [
            [0x22, 0x80, 0x22], [0x22, 0xc0, 0x80, 0x22], [0x22, 0xed, 0xa0, 0x80, 0x22],
            [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22],
            [0x22, 0xe2, 0x82, 0x22], [0x5b, 0xff, 0x5d], [0xff, 0xfe, 0x5b, 0x00, 0x5d, 0x00],
        ] as [[UInt8]]) func rejectsInvalidUTF8(bytes: [UInt8])
    {
        #expect(Self.outcome(of: bytes) == .rejection(.malformed))
    }

    @Test func limitsDepth() {
        func nested(_ depth: Int) -> [UInt8] {
            Array((String(repeating: "[", count: depth) + "0" + String(repeating: "]", count: depth)).utf8)
        }
        func isRejected(_ depth: Int, maximum: Int) -> Bool {
            Self.outcome(of: nested(depth), maximumDepth: maximum) == .rejection(.tooDeep)
        }
        #expect(!isRejected(32, maximum: 32))
        #expect(isRejected(33, maximum: 32))
        #expect(!isRejected(1, maximum: 1))
        #expect(isRejected(2, maximum: 1))
        #expect(isRejected(500_000, maximum: 32))
        #expect(!isRejected(1_000, maximum: 2_000))
        #expect(isRejected(33, maximum: 32))
    }

    @Test func limitsSize() throws {
        let text = Array("[1,2,3]".utf8)
        #expect(throws: JSONError(.tooLarge, "7 bytes, and at most 6 are allowed")) {
            try JSON.parse(text, maximumSize: 6)
        }
        _ = try JSON.parse(text, maximumSize: 7)
    }

    @Test func keepsValuesAliveWhileOthersAreParsed() throws {
        let first = try JSON.parse(Array(#"{"name":"the first text of all of them"}"#.utf8), maximumSize: 1000)
        let name = try #require(first.member("name"))
        for number in 0..<100 {
            let other = try JSON.parse(Array(#"{"name":"another text, number \#(number)"}"#.utf8), maximumSize: 1000)
            #expect(try other.member("name")?.string() == "another text, number \(number)")
        }
        #expect(try name.string() == "the first text of all of them")
    }

    @Test func parsesSmallTextsAfterLargeOnes() throws {
        let large = "[" + (0..<100_000).map(String.init).joined(separator: ",") + "]"
        #expect(Self.outcome(of: Array(large.utf8)) == .echo(large))
        #expect(Self.outcome(of: Array("[1]".utf8)) == .echo("[1]"))
    }

    @Test func parsesConcurrently() async {
        await withTaskGroup(of: Bool.self) { group in
            for task in 0..<8 {
                group.addTask {
                    (0..<500).allSatisfy { number in
                        let text = #"{"task":\#(task),"number":\#(number),"list":[1,2,3]}"#
                        return Self.outcome(of: Array(text.utf8)) == .echo(text)
                    }
                }
            }
            for await isRight in group { #expect(isRight) }
        }
    }
}
