import Kafka
import Testing

@testable import HalcyonCluster

@Suite struct DeadLetterFilterTests {
    @Test(
        arguments: [
            ("a", "a", true), ("a", "A", false), ("abc", "a*", true), ("abc", "*c", true), ("abc", "a*c", true),
            ("ac", "a*c", true), ("abcbc", "a*bc", true), ("abab", "*ab*ab", true), ("ab", "*ab*ab", false),
            ("aba", "ab*ba", false), ("", "*", true), ("a", "**", true), ("abc", "", false), ("a*c", "a*c", true),
            ("caf\u{e9}", "caf\u{e9}", true), ("caf\u{e9}", "cafe\u{301}", false),
            ("caf\u{e9}/1", "cafe\u{301}*", false),
            ("cafe\u{301}", "cafe*", true), ("1/caf\u{e9}", "*caf\u{e9}", true), ("a", "*ab", false),
            ("https://a.example/b.jpg", "https://*.example/*", true), ("xhttps://", "https://*", false),
        ] as [(String, String, Bool)]) func matchesGlobs(text: String, glob: String, matches: Bool)
    {
        #expect(DeadLetterFilter.matches(text, glob: glob) == matches)
    }

    @Test(arguments: [
        ("code=http_error", true), ("code=unknown", true), ("code=never", false), ("reason=attempts", true),
        ("reason=", false), ("lane=low", true), ("lane=lower", false), ("since=2h", true), ("since=2026-12-24", false),
        ("until=2026-12-24T18:00:00Z", true), ("job", false), ("job=", true), ("colour=red", false), ("", false),
    ]) func parsesValidConditionsOnly(text: String, isOne: Bool) {
        #expect((DeadLetterFilter(text) != nil) == isOne)
    }
}
