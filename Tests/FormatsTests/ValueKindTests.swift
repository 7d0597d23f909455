import Formats
import Testing

@Suite struct ValueKindTests {
    private enum Color: String, CaseIterable, Sendable {
        case red, blue
    }

    @Test(
        arguments: [
            ("0", .zero), ("500ms", .milliseconds(500)), ("30s", .seconds(30)), ("5m", .seconds(300)),
            ("2h", .seconds(7200)),
            ("1d", .seconds(86400)), ("1h30m", .seconds(5400)), ("1d1ms", .milliseconds(86_400_001)),
            ("", nil), ("30", nil), ("s", nil), ("-1s", nil), ("1.5s", nil), ("1 s", nil), ("30m1h", nil),
            ("1s1s", nil),
            ("5w", nil), ("٣s", nil), ("99999999999999999999d", nil), ("999999999999999999d", nil),
        ] as [(String, Duration?)]) func readsDurations(text: String, duration: Duration?)
    {
        #expect(ValueKind.duration().value(of: text) == duration)
    }

    @Test(
        arguments: [
            ("0", 0), ("1024", 1024), ("1024B", 1024), ("1kB", 1000), ("10MB", 10_000_000), ("512MiB", 512 << 20),
            ("512Mi", 512 << 20), ("2GiB", 2 << 30), ("1TiB", 1 << 40), ("64KiB", 65536),
            ("", nil), ("MiB", nil), ("-1", nil), ("1.5GiB", nil), ("1 GiB", nil), ("1gib", nil), ("1M", nil),
            ("9999999TiB", nil), ("99999999999999999999", nil),
        ] as [(String, Int?)]) func readsByteSizes(text: String, size: Int?)
    {
        #expect(ValueKind.byteSize().value(of: text) == size)
    }

    @Test(
        arguments: [
            ("localhost:9092", "localhost", 9092), ("127.0.0.1:0", "127.0.0.1", 0), ("[::1]:80", "::1", 80),
            ("[fe80::1%eth0]:65535", "fe80::1%eth0", 65535),
        ] as [(String, String, UInt16)]) func readsHostsAndPorts(text: String, host: String, port: UInt16)
    {
        let expected = HostPort(host: host, port: port)
        #expect(ValueKind.hostPort.value(of: text) == expected)
        #expect(expected.description == text)
    }

    @Test(arguments: [
        "", "localhost", ":80", "a:", "a:x", "a:65536", "a:-1", "::1:80", "[a]:80", "[::1]", "a b:80", "http://a:80",
    ])
    func rejectsInvalidHostsAndPorts(text: String) {
        #expect(HostPort(text) == nil)
    }

    @Test func readsNumbersInTheirRange() {
        #expect(ValueKind.integer(in: 1...64).value(of: "64") == 64)
        #expect(ValueKind.integer(in: 1...64).value(of: "65") == nil)
        #expect(ValueKind.integer().value(of: "-5") == -5)
        #expect(ValueKind.integer().value(of: "5.0") == nil)
        #expect(ValueKind.number(in: 0...1).value(of: "0.25") == 0.25)
        #expect(ValueKind.number(in: 0...1).value(of: "nan") == nil)
        #expect(ValueKind.duration(in: .seconds(1)...(.seconds(2))).value(of: "3s") == nil)
        #expect(ValueKind.byteSize(in: 10...20).value(of: "5") == nil)
    }

    @Test func readsWordsAndTexts() {
        for word in ["true", "yes", "on", "1", "True"] { #expect(ValueKind.bool.value(of: word) == true) }
        for word in ["false", "no", "off", "0"] { #expect(ValueKind.bool.value(of: word) == false) }
        #expect(ValueKind.bool.value(of: "maybe") == nil)
        #expect(ValueKind<Color>.oneOf.value(of: "blue") == .blue)
        #expect(ValueKind<Color>.oneOf.value(of: "Blue") == nil)
        #expect(ValueKind.text.value(of: " a b ") == " a b ")
    }

    @Test func readsListsAndOptionals() {
        #expect(ValueKind<[String]>.list(of: .text).value(of: "a, b,c") == ["a", "b", "c"])
        #expect(ValueKind<[String]>.list(of: .text).value(of: "") == [])
        #expect(ValueKind<[Int]>.list(of: .integer()).value(of: "1,x") == nil)
        #expect(ValueKind<[Int]>.list(of: .integer()).value(of: "1,,2") == nil)
        #expect(ValueKind<Int?>.optional(.integer()).value(of: "") == .some(nil))
        #expect(ValueKind<Int?>.optional(.integer()).value(of: "7") == 7)
        #expect(ValueKind<Int?>.optional(.integer()).value(of: "x") == nil)
    }

    @Test func readsConvertedValues() {
        #expect(ValueKind.seconds(in: .zero ... .seconds(60)).value(of: "1m") == 60)
        #expect(ValueKind.seconds(in: .zero ... .seconds(60)).value(of: "1s500ms") == 1.5)
        #expect(ValueKind.seconds(in: .zero ... .seconds(60)).value(of: "61s") == nil)
        #expect(ValueKind.whole(in: 1...9).value(of: "9") == 9)
        #expect(ValueKind.whole(in: 1...9).value(of: "9.5") == nil)
        #expect(ValueKind<Int?>.zeroAsNil(.byteSize()).value(of: "0") == .some(nil))
        #expect(ValueKind<Int?>.zeroAsNil(.byteSize()).value(of: "1kB") == 1000)
        #expect(ValueKind<Int?>.zeroAsNil(.byteSize(in: 0...10)).value(of: "11") == nil)
    }

    @Test func formatsValuesAndExpectations() {
        #expect(ValueKind.duration().text(of: .seconds(93_784)) == "1d2h3m4s")
        #expect(ValueKind.duration().text(of: .zero) == "0")
        #expect(ValueKind.seconds(in: .zero ... .seconds(60)).text(of: 1.001) == "1s1ms")
        #expect(ValueKind.whole(in: 1...9).text(of: 9) == "9")
        #expect(ValueKind<Duration?>.zeroAsNil(.duration()).text(of: nil) == "0")
        #expect(ValueKind.byteSize().text(of: 3 << 29) == "1536MiB")
        #expect(ValueKind.byteSize().text(of: 1000) == "1000")
        #expect(ValueKind<[Int]>.list(of: .integer()).text(of: [1, 2]) == "1,2")
        #expect(ValueKind<String?>.optional(.text).text(of: nil) == "")
        #expect(ValueKind<Color>.oneOf.expectation == "one of red, blue")
        #expect(ValueKind.integer(in: 1 ... .max).expectation == "a whole number of at least 1")
    }
}
