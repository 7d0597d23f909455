import HalcyonModel
import Kafka
import TestSupport
import Testing

/// Events name their webhook in a record header, and not in the JSON.
@Suite(.limitedParallelism) struct WebhookHeaderTests {
    /// Returns the `halcyon-webhook` headers of the first `count` events, by kind and job.
    private func webhooks(_ cluster: WorkerFixture, _ count: Int) async throws -> [String: String] {
        let reader = try await TopicReader.open(
            cluster.topics.events, from: .beginning, properties: cluster.broker.consumerProperties,
            within: .patience)
        var found: [String: String] = [:]
        var left = count
        for try await record in reader {
            let text = String(decoding: record.value ?? [], as: UTF8.self)
            let kind = Event.Kind.allCases.first { text.contains(#""type":"halcyon.image.\#($0.rawValue)""#) }
            let name = "\(kind?.rawValue ?? "") \(String(decoding: record.key ?? [], as: UTF8.self))"
            found[name] =
                record.headers.first { $0.name == "halcyon-webhook" }?.value.map {
                    String(decoding: $0, as: UTF8.self)
                } ?? "none"
            #expect(!text.contains("hooks.example.org") && !text.contains("webhook\":"))
            left -= 1
            if left == 0 { break }
        }
        await reader.close()
        return found
    }

    @Test func eventsCarryTheWebhookOfTheirJobOnly() async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                $0.reader.checkWebhook = { webhook throws(JobError) in
                    if webhook == .name("nobody") { throw JobError(.invalidJob, "who is that?") }
                }
            } _: {
                for (id, members) in [
                    ("named", #","webhook":"shop""#), ("url", #","webhook":"https://hooks.example.org/a""#),
                    ("plain", ""),
                    ("wrong", #","webhook":"shop","quality":-1"#), ("refused", #","webhook":"nobody""#),
                ] {
                    try await cluster.submit(#"{"id":"\#(id)","source":"initials:JD","width":8\#(members)}"#)
                }
                try await until("all jobs have ended") { cluster.events.terminal.count == 5 }
                let webhooks = try await webhooks(cluster, cluster.events.all.count)
                #expect(webhooks["ready named"] == "shop" && webhooks["ready url"] == "https://hooks.example.org/a")
                #expect(webhooks["ready plain"] == "none" && webhooks["failed wrong"] == "shop")
                #expect(webhooks["failed refused"] == "none")
                #expect(webhooks["started named"] ?? "shop" == "shop")
                let refused = try await cluster.events.terminal(of: "refused")
                #expect(refused.code == "invalid_job" && refused.message == "webhook: who is that?")
            }
        }
    }
}
