import Testing

@testable import HalcyonModel

/// URLs that change without a change of the image.
@Suite struct SourceIdentityRuleTests {
    private static func identity(_ url: String, _ rules: String...) throws -> String {
        Source.web(try WebURL(url).identified(by: rules.map { try #require(SourceIdentityRule($0)) })).cacheKey
    }

    @Test(arguments: [
        ("https://b.s3.amazonaws.com/a?X-Amz-Date=1&X-Amz-Signature=2", "https://b.s3.amazonaws.com/a"),
        ("https://b.s3.amazonaws.com/a?v=1&x-amz-date=1&w=2", "https://b.s3.amazonaws.com/a?v=1&w=2"),
        (
            "https://B.S3.amazonaws.com/a?Signature=1&Signatures=2&X-Am=3",
            "https://b.s3.amazonaws.com/a?Signatures=2&X-Am=3"
        ),
        // Not a host of the rule, which has more than its suffix.
        ("https://s3.amazonaws.com/a?Signature=1", "https://s3.amazonaws.com/a?Signature=1"),
        ("https://img.example.org/a?token=1&&b", "https://img.example.org/a?&b"),
        ("https://img.example.org/a?b#?token=1", "https://img.example.org/a?b"),
        ("https://img.example.org/a", "https://img.example.org/a"),
        ("https://other.org/a?utm_source=x&token=1", "https://other.org/a?token=1"),
    ])
    func omitsParameters(url: String, identity: String) throws {
        #expect(
            try Self.identity(url, "*.s3.amazonaws.com?X-Amz-*&Signature", "img.example.org?TOKEN", "*?utm_*")
                == "url:\(identity)")
    }

    @Test func requestsTheURLAsGiven() throws {
        let rule = try #require(SourceIdentityRule("*?*"))
        let url = try WebURL("https://example.org/a?x=1").identified(by: [rule])
        #expect(url.text == "https://example.org/a?x=1" && Source.web(url).cacheKey == "url:https://example.org/a")
        let plain = try WebURL(url.text)
        #expect(url != plain && url == plain.identified(by: [rule]))
    }

    @Test(arguments: [
        "", "example.org", "?a", "example.org?", "example.org?a&", "exa*mple.org?a", "*.*.org?a", "example.org?a*b",
        "example.org/path?a", "example.org?a=1", "example.org?a b", "**?a",
    ])
    func rejectsInvalidRules(text: String) { #expect(SourceIdentityRule(text) == nil) }
}
