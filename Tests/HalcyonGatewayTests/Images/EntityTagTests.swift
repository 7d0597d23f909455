import Testing

@testable import HalcyonGateway

/// Conditional requests by entity tag (RFC 9110, 13.1).
@Suite struct EntityTagTests {
    private let tag = EntityTag(value: "abc")

    @Test(arguments: [
        "\"abc\"", "W/\"abc\"", "\"x\", \"abc\"", "\"x\",W/\"abc\" , \"y\"", "*", " * ", "\"a,b\", \"abc\"",
    ])
    func matchesHeadersThatNameIt(_ header: String) { #expect(tag.isNamed(by: header)) }

    @Test(arguments: ["\"abcd\"", "\"ab\"", "abc", "\"\"", "", "\"ABC\"", "\"abc", "\"x,abc\"", "**"])
    func doesNotMatchOtherHeaders(_ header: String) { #expect(!tag.isNamed(by: header)) }

    @Test(arguments: ["\"abc\"", "\"x\", \"abc\"", "W/\"abc\", \"abc\"", "*", " * "])
    func ifMatchAllowsHeadersThatNameIt(_ header: String) { #expect(tag.allowsMatch(header)) }

    @Test(arguments: ["W/\"abc\"", "\"x\",W/\"abc\" , \"y\"", "\"x\"", "abc", "", "\"x,abc\"", "**"])
    func ifMatchRequiresTheStrongTag(_ header: String) {
        #expect(!tag.allowsMatch(header))
        #expect(tag.allowsMatch(nil))
    }

    @Test func ifRangeRequiresTheExactStrongTag() {
        #expect(tag.allowsRange(nil) && tag.allowsRange("\"abc\"") && tag.allowsRange(" \"abc\" "))
        for other in ["W/\"abc\"", "\"x\"", "Sat, 29 Oct 1994 19:43:31 GMT", "", "*", "\"abc\", \"x\""] {
            #expect(!tag.allowsRange(other))
        }
    }
}
