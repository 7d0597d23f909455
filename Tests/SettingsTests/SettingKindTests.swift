import Settings
import Testing

@Suite struct SettingKindTests {
    private enum Colour: String, CaseIterable, Sendable {
        case red, blue
    }

    private struct One<Value: Sendable>: Sendable {
        var value: Value
    }

    private func schema<Value>(_ kind: SettingKind<Value>, default: Value) -> SettingsSchema<One<Value>> {
        SettingsSchema(prefix: "T_", defaults: One(value: `default`), settings: [Setting("a", \.value, kind)])
    }

    /// The value of one setting of that kind, read from the environment; nil when it is refused.
    private func read<Value>(_ kind: SettingKind<Value>, _ text: String, else other: Value) -> Value? {
        try? Settings(schema(kind, default: other), environment: ["T_A": text]).options.value
    }

    /// The default of a setting of that kind, as it is listed.
    private func written<Value>(_ kind: SettingKind<Value>, _ value: Value) throws -> String {
        try Settings(schema(kind, default: value)).listing[0].value
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
        #expect(read(.duration(), text, else: .seconds(-1)) == duration)
    }

    @Test(
        arguments: [
            ("0", 0), ("1024", 1024), ("1024B", 1024), ("1kB", 1000), ("10MB", 10_000_000), ("512MiB", 512 << 20),
            ("512Mi", 512 << 20), ("2GiB", 2 << 30), ("1TiB", 1 << 40), ("64KiB", 65536),
            ("", nil), ("MiB", nil), ("-1", nil), ("1.5GiB", nil), ("1 GiB", nil), ("1gib", nil), ("1M", nil),
            ("9999999TiB", nil), ("99999999999999999999", nil),
        ] as [(String, Int?)]) func readsByteSizes(text: String, size: Int?)
    {
        #expect(read(.byteSize(), text, else: -1) == size)
    }

    @Test(
        arguments: [
            ("localhost:9092", "localhost", 9092), ("127.0.0.1:0", "127.0.0.1", 0), ("[::1]:80", "::1", 80),
            ("[fe80::1%eth0]:65535", "fe80::1%eth0", 65535),
        ] as [(String, String, UInt16)]) func readsHostsAndPorts(text: String, host: String, port: UInt16)
    {
        let expected = HostPort(host: host, port: port)
        #expect(read(.hostPort, text, else: HostPort(host: "", port: 0)) == expected)
        #expect(expected.description == text)
    }

    @Test(arguments: [
        "", "localhost", ":80", "a:", "a:x", "a:65536", "a:-1", "::1:80", "[a]:80", "[::1]", "a b:80", "http://a:80",
    ])
    func refusesWhatIsNoHostAndPort(text: String) {
        #expect(HostPort(text) == nil)
    }

    @Test func readsNumbersInTheirRange() {
        #expect(read(.integer(in: 1...64), "64", else: 0) == 64)
        #expect(read(.integer(in: 1...64), "65", else: 0) == nil)
        #expect(read(.integer(), "-5", else: 0) == -5)
        #expect(read(.integer(), "5.0", else: 0) == nil)
        #expect(read(.double(in: 0...1), "0.25", else: 0) == 0.25)
        #expect(read(.double(in: 0...1), "nan", else: 0) == nil)
        #expect(read(.duration(in: .seconds(1)...(.seconds(2))), "3s", else: .zero) == nil)
        #expect(read(.byteSize(in: 10...20), "5", else: 0) == nil)
    }

    @Test func readsWordsAndTexts() {
        for word in ["true", "yes", "on", "1", "True"] { #expect(read(.bool, word, else: false) == true) }
        for word in ["false", "no", "off", "0"] { #expect(read(.bool, word, else: true) == false) }
        #expect(read(.bool, "maybe", else: true) == nil)
        #expect(read(.oneOf, "blue", else: Colour.red) == .blue)
        #expect(read(.oneOf, "Blue", else: Colour.red) == nil)
        #expect(read(.string, " a b ", else: "") == " a b ")
    }

    @Test func readsListsAndOptionals() {
        #expect(read(.list(of: .string), "a, b,c", else: []) == ["a", "b", "c"])
        #expect(read(.list(of: .string), "", else: ["x"]) == [])
        #expect(read(.list(of: .integer()), "1,x", else: []) == nil)
        #expect(read(.list(of: .integer()), "1,,2", else: []) == nil)
        #expect(read(.optional(.integer()), "", else: 1) == .some(nil))
        #expect(read(.optional(.integer()), "7", else: 1) == 7)
        #expect(read(.optional(.integer()), "x", else: 1) == nil)
    }

    @Test func readsWhatIsKeptInAnotherUnit() {
        #expect(read(.seconds(in: .zero ... .seconds(60)), "1m", else: 0) == 60)
        #expect(read(.seconds(in: .zero ... .seconds(60)), "1s500ms", else: 0) == 1.5)
        #expect(read(.seconds(in: .zero ... .seconds(60)), "61s", else: 0) == nil)
        #expect(read(.whole(in: 1...9), "9", else: 0) == 9)
        #expect(read(.whole(in: 1...9), "9.5", else: 0) == nil)
        #expect(read(.zeroAsNil(.byteSize()), "0", else: 1) == .some(nil))
        #expect(read(.zeroAsNil(.byteSize()), "1kB", else: 1) == 1000)
        #expect(read(.zeroAsNil(.byteSize(in: 0...10)), "11", else: 1) == nil)
    }

    @Test func writesDefaultsInAFormThatReadsBack() throws {
        #expect(try written(.duration(), .seconds(93_784)) == "1d2h3m4s")
        #expect(try written(.duration(), .zero) == "0")
        #expect(try written(.seconds(in: .zero ... .seconds(60)), 1.001) == "1s1ms")
        #expect(try written(.whole(in: 1...9), 9) == "9")
        #expect(try written(.zeroAsNil(.duration()), nil) == "0")
        #expect(try written(.byteSize(), 3 << 29) == "1536MiB")
        #expect(try written(.byteSize(), 1000) == "1000")
        #expect(try written(.list(of: .integer()), [1, 2]) == "1,2")
        #expect(try written(.optional(.string), nil) == "")
        #expect(SettingKind<Colour>.oneOf.expectation == "one of red, blue")
        #expect(SettingKind.integer(in: 1 ... .max).expectation == "a whole number of at least 1")
    }
}
