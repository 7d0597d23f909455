import HalcyonCoding
import HalcyonModel
import Testing

/// The webhook of a job.
@Suite struct WebhookFieldTests {
    /// A decoder that allows only the webhook `shop`.
    private static var restricted: JobDecoder {
        var reader = JobDecoder(isStrict: true)
        reader.checkWebhook = { webhook throws(JobError) in
            if webhook != .name("shop") { throw JobError(.invalidJob, "not for you") }
        }
        return reader
    }

    @Test func readsNamesAndURLs() throws {
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
    ]) func rejectsInvalidWebhooks(value: String, words: String) throws {
        let failure = try #require(rejection(#""webhook":\#(value)"#)).failure
        #expect(failure.code == .invalidJob)
        #expect(failure.message.hasPrefix("webhook: ") && failure.message.contains(words), "\(failure)")
    }

    @Test func rejectsJobsWithADisallowedWebhook() throws {
        #expect(try read(#""webhook":"shop""#, by: Self.restricted).webhook == .name("shop"))
        let rejected = try #require(rejection(#""id":"a","webhook":"blog""#, by: Self.restricted))
        #expect(rejected.failure == JobError(.invalidJob, "webhook: not for you"))
        #expect(rejected.id == "a" && rejected.webhook == nil)
    }

    @Test func rejectedJobKeepsItsAllowedWebhook() throws {
        #expect(rejection(#""webhook":"shop","width":-1"#, by: Self.restricted)?.webhook == .name("shop"))
        #expect(rejection(#""webhook":"blog","width":-1"#, by: Self.restricted)?.webhook == nil)
        #expect(rejection(#""webhook":7,"width":-1"#, by: Self.restricted)?.webhook == nil)
    }

    @Test func rejectedJobHasTheWebhookOfItsPreset() throws {
        let presets = try ["shop", "blog"].map { name in
            try Preset(name, json: Array(#"{"job":{"webhook":"\#(name)"}}"#.utf8))
        }
        var reader = Self.restricted
        reader.findPreset = { name in presets.first { $0.name == name } }
        func webhook(_ members: String) -> Webhook? { rejection(#"\#(members),"width":-1"#, by: reader)?.webhook }
        #expect(webhook(#""preset":"shop""#) == .name("shop"))
        #expect(webhook(#""preset":{"name":"shop"},"webhook":null"#) == .name("shop"))
        #expect(webhook(#""preset":"blog""#) == nil)
        #expect(webhook(#""preset":"none""#) == nil)
        // Its own webhook takes precedence.
        #expect(webhook(#""preset":"blog","webhook":"shop""#) == .name("shop"))
        #expect(webhook(#""preset":"shop","webhook":7"#) == nil)
    }

    @Test func rejectsWebhooksInVariants() {
        #expect(rejection(#""variants":[{"webhook":"shop"}]"#)?.failure.message.contains("belongs to the job") == true)
    }
}
