import HalcyonModel
import HalcyonWire
import Testing

/// Sources that are not URLs.
@Suite struct SourceFieldTests {
    static func source(_ json: String) throws -> Source { try read(message: #"{"source":\#(json)}"#).job.source }

    @Test func initialsAreATextOrAnObject() throws {
        let drawn = Source.initials(try Initials("JD"))
        #expect(try Self.source(#""initials:JD""#) == drawn)
        #expect(try Self.source(#"{"initials":"JD"}"#) == drawn)
        #expect(try Self.source(#"{"initials":"JD","background":null,"foreground":null}"#) == drawn)
        #expect(drawn.text == "initials:JD")
    }

    @Test func initialsHaveColours() throws {
        let blue = CSSColor(red: 0x33, green: 0x66, blue: 0x99)
        #expect(
            try Self.source(##"{"initials":"JD","background":"#336699","foreground":"black"}"##)
                == .initials(Initials("JD", background: blue, foreground: .black)))
        #expect(
            try Self.source(##"{"initials":"JD","background":"#336699"}"##).canonicalText(of: nil)
                == "halcyon-source/1\ninitials:JD #336699ff #ffffffff\n")
    }

    @Test(arguments: [
        (#""initials:""#, FailureCode.invalidJob, "source: expected 1 to 3 initials without spaces"),
        (#""initials:ABCD""#, .invalidJob, "source: expected 1 to 3 initials without spaces"),
        (#""initials:A B""#, .invalidJob, "source: expected 1 to 3 initials without spaces"),
        (#""initials:A\n""#, .invalidJob, "source: expected 1 to 3 initials without spaces"),
        (#""Initials:JD""#, .unsupportedSource, "source: no provider for initials: URLs"),
        (#"{"initials":7}"#, .invalidJob, "source.initials: expected a string, found a number"),
        (#"{"initials":""}"#, .invalidJob, "source: expected 1 to 3 initials without spaces"),
        (#"{"initials":"JD","colour":"red"}"#, .invalidJob, "source.colour: is no part of initials"),
        (#"{"initials":"JD","background":"rde"}"#, .invalidJob, "source.background: expected a CSS colour"),
        (#"{"initials":"JD","initials":"AB"}"#, .invalidJob, "source.initials: stands twice"),
        (#"{"video":"http://h/a","seconds":15}"#, .unsupportedSource, "source: no provider for sources of this kind"),
        (#"["initials:JD"]"#, .invalidJob, "source: expected a string, found an array"),
    ])
    func refusesWhatIsNoSource(json: String, code: FailureCode, message: String) throws {
        let failure = try #require(refusal(message: #"{"source":\#(json)}"#)).failure
        #expect(failure.code == code)
        #expect(failure.message.hasPrefix(message), "\(failure.message)")
    }

    @Test func aBrokenJobStillTellsOfItsInitials() throws {
        #expect(try #require(refusal(message: #"{"source":{"initials":"JD"},"width":-1}"#)).source == "initials:JD")
        #expect(try #require(refusal(message: #"{"source":{"video":"http://h/a"},"id":"a"}"#)).source == nil)
    }
}
