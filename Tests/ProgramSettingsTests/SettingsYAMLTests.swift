import ProgramSettings
import Testing

/// Contents of settings files. The tests use the public API, because the YAML reader is internal.
@Suite struct SettingsYAMLTests {
    struct Options: Sendable {
        var a = "default"
        var list: [String] = []
        var map: [String: String] = [:]
    }

    static let schema = SettingsSchema(
        prefix: "T_", defaults: Options(),
        settings: [Setting("a", \.a, .text), Setting("b.list", \.list, .list(of: .text))],
        maps: [SettingMap("m", \.map, variables: "M_")])

    func errorMessage(_ yaml: [UInt8]) -> String {
        do {
            _ = try Settings(Self.schema, file: try SettingsFile(name: "f", bytes: yaml))
            return ""
        } catch { return "\(error)" }
    }

    @Test(arguments: [
        ("a: 1\na: 2", "f:2: a is already set in line 1"),
        ("b:\n  list: [1]\nb.list: [2]", "f:3: b.list is already set in line 2"),
        ("m:\n  x: 1\n  y: 2\n  x: 3", "f:4: m.x is already set in line 2"),
        ("a: &x 1\nb:\n  list: *x", "f:3: YAML aliases are not allowed"),
        ("a: !!binary aGVsbG8=", "f:1: YAML tags are not allowed"),
        ("a: 1\n---\na: 2", "f:2: expected a single YAML document"),
        ("a: 1\n...\n---\n", "f:3: expected a single YAML document"),
        ("- a\n- b", "f:1: expected settings as name: value"),
        ("just text", "f:1: expected settings as name: value"),
        ("b:\n  list:\n    - [1]", "f:3: b.list: a list may contain only plain values"),
        ("b:\n  list:\n    - x: 1", "f:3: b.list: a list may contain only plain values"),
        ("? [a]\n: 1", "f:1: expected a name"),
        ("'': 1", "f:1: expected a name"),
    ]) func rejectsDuplicatesAndUnsupportedYAML(yaml: String, message: String) {
        #expect(errorMessage(Array(yaml.utf8)) == message)
    }

    @Test(arguments: ["a: [1", "a: 'x", "a: b: c", "\ta: 1", "a: @x", "a: {", "%YAML 9.9\n---\na: 1", "a: \"\\q\""])
    func reportsYAMLSyntaxErrors(yaml: String) {
        #expect(errorMessage(Array(yaml.utf8)).contains(": not YAML: "))
    }

    @Test func rejectsInvalidUTF8() {
        #expect(errorMessage([0x61, 0x3a, 0x20, 0xff, 0xfe]).contains("not YAML"))
    }

    @Test func readsCommonYAMLForms() throws {
        let yaml = """
            %YAML 1.1
            ---
            # settings
            "a": >-
              folded
              text
            b: {list: ["1", 2, x y]}
            m: {p.q: "\\u00e9", r: {s: 1}}
            ...

            """
        let settings = try Settings(Self.schema, file: try SettingsFile(name: "f", bytes: Array(yaml.utf8)))
        #expect(settings.options.a == "folded text")
        #expect(settings.options.list == ["1", "2", "x y"])
        #expect(settings.options.map == ["p.q": "é", "r.s": "1"])
    }

    @Test func rejectsDeepNestingAndLargeFiles() {
        #expect(errorMessage(Array(String(repeating: "[", count: 500_000).utf8)).hasPrefix("f:1: "))
        #expect(errorMessage(Array(String(repeating: "{a: ", count: 200_000).utf8)).contains("nested too deeply"))
        #expect(
            errorMessage(Array(("a: " + String(repeating: "[", count: 500_000)).utf8))
                == "f:1: a: a list may contain only plain values")
        #expect(
            errorMessage([UInt8](repeating: UInt8(ascii: "#"), count: (1 << 20) + 1)) == "f: more than 1048576 bytes")
        #expect(errorMessage([UInt8](repeating: UInt8(ascii: "#"), count: 1 << 20)) == "")
    }
}
