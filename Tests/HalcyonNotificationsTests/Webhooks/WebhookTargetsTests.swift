import HalcyonModel
import HalcyonNotifications
import Testing

@Suite struct WebhookTargetsTests {
    private static let url = try! WebURL("http://hooks.internal:8080/done")

    @Test func namedTargetsMayHaveTheirOwnSecrets() throws {
        let targets = WebhookTargets(
            urls: ["shop": Self.url, "blog": Self.url], secretsByName: ["shop": [Secrets.other]],
            secrets: [Secrets.one])
        let shop = try targets.endpoint(of: Webhook("shop"))
        #expect(shop.url == Self.url && shop.secrets == [Secrets.other] && shop.isTrusted)
        #expect(try targets.endpoint(of: Webhook("blog")).secrets == [Secrets.one])
        let failure = #expect(throws: JobError.self) { try targets.endpoint(of: .name("Shop")) }
        #expect(failure?.code == .invalidJob && failure?.message.contains("webhooks.urls") == true)
    }

    @Test func acceptsURLsOfAllowedHostsOnly() throws {
        let targets = WebhookTargets(
            secrets: [Secrets.one, Secrets.other], allow: ["hooks.example.org", "*.Example.com"])
        for url in ["https://hooks.example.org/a?b=1", "http://HOOKS.example.org:99", "https://a.b.example.com/"] {
            let endpoint = try targets.endpoint(of: Webhook(url))
            #expect(endpoint.url.text == url && !endpoint.isTrusted && endpoint.secrets.count == 2)
        }
        for url in [
            "https://example.com/", "https://example.org/", "https://hooks.example.org.evil.net/",
            "http://127.0.0.1/hooks.example.org",
        ] {
            let failure = #expect(throws: JobError.self) { try targets.endpoint(of: Webhook(url)) }
            #expect(failure?.code == .invalidJob && failure?.message.contains("webhooks.allow") == true)
        }
    }

    @Test func rejectsURLsWithoutASecret() {
        let targets = WebhookTargets(allow: ["hooks.example.org"])
        let failure = #expect(throws: JobError.self) { try targets.endpoint(of: Webhook("https://hooks.example.org/")) }
        #expect(failure?.message.contains("webhooks.secret") == true)
        #expect(WebhookTargets().isEmpty && !targets.isEmpty && !WebhookTargets(urls: ["a": Self.url]).isEmpty)
    }
}
