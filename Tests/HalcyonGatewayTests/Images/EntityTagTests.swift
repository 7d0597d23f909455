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

    @Test func ifRangeRequiresTheExactStrongTag() {
        #expect(tag.allowsRange(nil) && tag.allowsRange("\"abc\"") && tag.allowsRange(" \"abc\" "))
        for other in ["W/\"abc\"", "\"x\"", "Sat, 29 Oct 1994 19:43:31 GMT", "", "*", "\"abc\", \"x\""] {
            #expect(!tag.allowsRange(other))
        }
    }
}
