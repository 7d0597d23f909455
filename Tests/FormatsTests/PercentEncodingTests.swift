import Formats
import Testing

@Suite struct PercentEncodingTests {
    @Test(arguments: [("", ""), ("a%20b%2F", "a b/"), ("%c3%A9+%2b", "é++"), ("%25%32%35", "%25"), ("%00", "\0")])
    func decodesEscapes(text: String, expected: String) {
        #expect(PercentEncoding.decode(text) == expected)
        #expect(PercentEncoding.decode(text.utf8) == Array(expected.utf8))
    }

    @Test(arguments: ["%", "a%4", "%4", "%g0", "%0g", "%+1", "%-1", "% 1", "%%41", "%\u{661}1"])
    func rejectsInvalidEscapes(text: String) {
        #expect(PercentEncoding.decode(text) == nil)
        #expect(PercentEncoding.decode(text.utf8) == nil)
    }

    @Test func decodesBytesThatAreNotUTF8() {
        #expect(PercentEncoding.decode("%ff%C3".utf8) == [0xff, 0xc3])
        #expect(PercentEncoding.decode("%ff%C3") == nil)
    }

    @Test func decodesPlusAsSpaceIfRequested() {
        #expect(PercentEncoding.decode("a+b%2B".utf8, plusIsSpace: true) == Array("a b+".utf8))
    }

    @Test func escapesAllButUnreservedAndKeptCharacters() {
        #expect(PercentEncoding.encode("aZ09-._~ é/:%+") == "aZ09-._~%20%C3%A9%2F%3A%25%2B")
        #expect(PercentEncoding.encode("/a b/c:d", keeping: "/") == "/a%20b/c%3Ad")
        #expect(PercentEncoding.encode("halcyon:{a}", keeping: ":") == "halcyon:%7Ba%7D")
    }

    @Test func roundTripsText() {
        let text = String(decoding: 0..<128, as: UTF8.self) + "é\u{2028}🌊"
        #expect(PercentEncoding.decode(PercentEncoding.encode(text)) == text)
    }
}
