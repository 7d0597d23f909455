import HalcyonCoding
import HalcyonModel
import Testing

/// Where a job wants its end told.
@Suite struct WebhookFieldTests {
    /// One whose operator lets jobs name nothing but `shop`.
    private static var choosy: JobDecoder {
        var reader = JobDecoder(isStrict: true)
        reader.checkWebhook = { webhook throws(JobError) in
            if webhook != .name("shop") { throw JobError(.invalidJob, "not for you") }
        }
        return reader
    }

    @Test func isANameOrAURL() throws {
        #expect(try read("").webhook == nil)
        #expect(try read(#""webhook":null"#).webhook == nil)
        #expect(try read(#""webhook":"shop.7""#).webhook == .name("shop.7"))
        let url = "https://Hooks.example.org:8443/a?b=c"
        #expect(try read(#""webhook":"\#(url)""#).webhook == .url(WebURL(url)))
        #expect(try read(#""webhook":"\#(url)""#).webhook?.text == url)
    }

    @Test(arguments: [
        (#""a b""#, "expected an http or https URL, or a name of 1 to 64"),
        (#""ftp://h/""#, "expected an http or https URL"),
        (#""https://u:p@h/""#, "must not contain a user or password"),
        (#""http://h:99999/""#, "expected an http or https URL"),
        ("7", "expected a string"),
    ]) func anythingElseIsRefusedInClearWords(value: String, words: String) throws {
        let failure = try #require(refusal(#""webhook":\#(value)"#)).failure
        #expect(failure.code == .invalidJob)
        #expect(failure.message.hasPrefix("webhook: ") && failure.message.contains(words), "\(failure)")
    }

    @Test func whereItMayNotBeToldTheJobIsRefused() throws {
        #expect(try read(#""webhook":"shop""#, by: Self.choosy).webhook == .name("shop"))
        let refused = try #require(refusal(#""id":"a","webhook":"blog""#, by: Self.choosy))
        #expect(refused.failure == JobError(.invalidJob, "webhook: not for you"))
        #expect(refused.id == "a" && refused.webhook == nil)
    }

    @Test func whatIsRefusedForAnotherReasonIsToldThere() throws {
        #expect(refusal(#""webhook":"shop","width":-1"#, by: Self.choosy)?.webhook == .name("shop"))
        #expect(refusal(#""webhook":"blog","width":-1"#, by: Self.choosy)?.webhook == nil)
        #expect(refusal(#""webhook":7,"width":-1"#, by: Self.choosy)?.webhook == nil)
    }

    @Test func aVariantHasNone() {
        #expect(refusal(#""variants":[{"webhook":"shop"}]"#)?.failure.message.contains("belongs to the job") == true)
    }
}
