import HalcyonModel
import Testing

@Suite struct InitialsTests {
    @Test(arguments: [
        "J", "JD", "ÅÖÉ", "Ж", "山田", "x+y", "e\u{301}f\u{301}g\u{301}", "\u{1f469}\u{200d}\u{1f680}",
        "\u{1f1e9}\u{1f1ea}",
    ])
    func acceptsOneToThreeGraphemeClusters(text: String) throws {
        #expect(try Initials(text).text == text)
    }

    @Test(arguments: [
        "", "ABCD", "A B", " A", "A\t", "\n", "\u{0}", "A\u{7f}", "\u{a0}", "\u{2028}", "\u{200b}", "\u{202e}AB",
        "\u{feff}",
        "A\u{85}", "a\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
    ])
    func rejectsInvalidInitials(text: String) {
        #expect { try Initials(text) } throws: { ($0 as? JobError)?.code == .invalidJob }
    }

    @Test func derivesBackgroundFromTheText() throws {
        #expect(try Initials("JD") == Initials("JD"))
        let colors = try Set((0..<26).map { try Initials(String(UnicodeScalar(UInt8(65 + $0)))).background })
        #expect(colors.count > 6)
    }

    @Test(arguments: [
        (CSSColor.white, CSSColor.black), (.black, .white), (CSSColor(red: 255, green: 255, blue: 0), .black),
        (CSSColor(red: 0, green: 0, blue: 255), .white),
    ])
    func choosesBlackOrWhiteForeground(background: CSSColor, foreground: CSSColor) throws {
        #expect(try Initials("JD", background: background).foreground == foreground)
    }

    @Test func cacheKeyContainsColors() throws {
        let plain = try Initials("JD")
        let same = try Initials("JD", background: plain.background, foreground: plain.foreground)
        #expect(Source.initials(plain).cacheKey == Source.initials(same).cacheKey)
        let other = try Initials("JD", background: plain.background, foreground: CSSColor(red: 1, green: 2, blue: 3))
        #expect(Source.initials(plain).cacheKey != Source.initials(other).cacheKey)
        #expect(Source.initials(plain).text == "initials:JD")
    }
}
