import HalcyonCoding
import HalcyonModel
import Testing

/// Processors and sizers that a host program registers.
@Suite struct CustomExtensionTests {
    static let reader = JobDecoder(
        isStrict: true, customProcessors: ["vignette", "sepia", "blur"], customSizers: ["golden", "natural"])

    static func processors(_ json: String) throws -> [Processor] {
        try read(#""processors":\#(json)"#, by: reader).variant.processors
    }

    @Test func readsRegisteredProcessorsAndSizers() throws {
        #expect(try Self.processors(#"["sepia"]"#) == [.custom(CustomExtension(name: "sepia"))])
        #expect(
            try Self.processors(#"[{"vignette":{"radius":0.5}}]"#)
                == [.custom(CustomExtension(name: "vignette", parameters: #"{"radius":0.5}"#))])
        #expect(
            try read(#""sizer":{"golden":{"width":300}}"#, by: Self.reader).variant.sizing.goal
                == .custom(CustomExtension(name: "golden", parameters: #"{"width":300}"#)))
        #expect(
            try read(#""sizer":"golden""#, by: Self.reader).variant.sizing.goal
                == .custom(CustomExtension(name: "golden")))
    }

    @Test func builtInNamesTakePrecedence() throws {
        #expect(try Self.processors(#"[{"blur":{"radius":2}}]"#) == [.blur(radius: 2)])
        #expect(try read(#""sizer":"natural""#, by: Self.reader).variant.sizing.goal == .sizer(.natural))
    }

    @Test(arguments: [
        (#"{"b":1,"a":2}"#, #"{"a":2,"b":1}"#),
        (#" { "b" : [ { "d" : null, "c" : true } , 1.50 ] , "a" : { } } "#, #"{"a":{},"b":[{"c":true,"d":null},1.5]}"#),
        (#"{"é":1,"z":"\u00e9\n","A":-0}"#, #"{"A":0,"z":"é\n","é":1}"#),
        (#"{"aa":1,"a":1,"":1}"#, #"{"":1,"a":1,"aa":1}"#),
    ])
    func parametersAreCompactAndSorted(json: String, text: String) throws {
        #expect(
            try Self.processors(#"[{"sepia":\#(json)}]"#) == [.custom(CustomExtension(name: "sepia", parameters: text))]
        )
    }

    @Test func equalParametersHaveEqualCanonicalText() throws {
        let texts = try [#"{"a":1,"b":{"c":1,"d":2}}"#, #"{"b":{"d":2,"c":1},"a":1}"#].map {
            try read(#""processors":[{"sepia":\#($0)}]"#, by: Self.reader).variant.canonicalText
        }
        #expect(texts[0] == texts[1])
        #expect(texts[0] == "halcyon-variant/1\nsize=natural\nprocessor=sepia {\"a\":1,\"b\":{\"c\":1,\"d\":2}}\n")
        #expect(
            try read(#""sizer":{"golden":{"b":1,"a":2}},"screenScale":2"#, by: Self.reader).variant.canonicalText
                == "halcyon-variant/1\nsize=custom golden {\"a\":2,\"b\":1}\n")
    }

    @Test func comparesParametersByBytes() {
        let composed = CustomExtension(name: "a", parameters: "{\"\u{e9}\":1}")
        let decomposed = CustomExtension(name: "a", parameters: "{\"e\u{301}\":1}")
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed, composed]).count == 2)
    }

    @Test(arguments: [
        (#""processors":[{"vignete":{}}]"#, "processors[0].vignete: unknown processor; did you mean vignette?"),
        (#""processors":[{"sepia":7}]"#, "processors[0].sepia: expected an object of parameters"),
        (#""processors":[{"sepia":null}]"#, "processors[0]: expected an object that names a processor"),
        (#""processors":[{"sepia":{"a":{"b":1,"b":2}}}]"#, "processors[0].sepia.a.b: duplicate name"),
        (#""sizer":{"goldn":{}}"#, "sizer.goldn: unknown sizer; did you mean golden?"),
        (#""sizer":{"golden":[]}"#, "sizer.golden: expected an object of parameters"),
        (#""sizer":{"golden":{}},"width":4"#, "sizer: cannot be combined with width or height"),
        (#""sizer":"goldn""#, "sizer: expected \"natural\""),
    ])
    func rejectsInvalidExtensions(members: String, message: String) throws {
        let failure = try #require(rejection(members, by: Self.reader)).failure
        #expect(failure.code == .invalidJob)
        #expect(failure.message.hasPrefix(message), "\(failure.message)")
    }

    @Test func limitsCompactParametersTo16KiB() throws {
        let spaces = String(repeating: " ", count: 30_000)
        let most = String(repeating: "x", count: 16_384 - 8)
        #expect(try Self.processors(#"[{"sepia":{\#(spaces)"a":"\#(most)"}}]"#).count == 1)
        let failure = try #require(rejection(#""processors":[{"sepia":{"a":"\#(most)x"}}]"#, by: Self.reader)).failure
        #expect(failure.message == "processors[0].sepia: 16385 bytes, and at most 16384 are allowed")
    }
}
