import Curl
import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonSources
import HalcyonWire
import Kafka
import Telemetry

/// Takes committed events that are for webhooks, and those that are to be sent again.
final class WebhookSender: Sendable {
    let consumer: JobConsumer
    private let client: GuardedClient
    private let producer: Producer

    init(
        _ options: NotifierOptions, log: Log, metrics: Metrics, onEnd: @escaping @Sendable (KafkaError) -> Void
    ) throws(KafkaError) {
        let log = log.with(["of": "webhooks"])
        let (topics, webhooks) = (options.topics, options.webhooks)
        producer = try Producer(properties: options.kafka.producer, onFatal: onEnd)
        client = GuardedClient(options.policy, userAgent: options.userAgent)
        let delivery = WebhookDelivery(
            post: WebhookPost(
                client: client, timeout: webhooks.timeout, maximumResponseBytes: webhooks.maximumResponseBytes),
            options: webhooks, topics: topics, gates: TargetGates(webhooks.limits),
            outbox: AcknowledgedOutbox(producer), refusals: Refusals(log: log), metrics: WebhookMetrics(metrics),
            log: log)
        consumer = JobConsumer(options: options.consumer, of: "webhooks", log: log, metrics: metrics) { records in
            for taken in records {
                if WebhookNotice.isIn(taken.record, topics) {
                    Task { await delivery.run(taken) }
                } else if taken.begin() {
                    taken.end()
                } else {
                    taken.handBack()
                }
            }
        }
    }

    func start(_ options: NotifierOptions) async throws(KafkaError) {
        try await consumer.start(
            topics: options.webhookGroup.topics,
            properties: options.kafka.notifier(
                group: options.webhookGroup.name, patience: options.consumer.revocationPatience),
            events: ClientEvents())
    }

    func drain(grace: Duration) async {
        _ = await consumer.drain(grace: grace)
        await client.close()
        await producer.close()
    }
}

/// Tells a webhook of an event: one signed request, as the Standard Webhooks specification (1.0.0) has it.
struct WebhookPost: Sendable {
    let client: GuardedClient
    let timeout: Duration
    let maximumResponseBytes: Int

    /// - Returns: why the webhook was not told; nil when it was.
    /// - Throws: `CancellationError` when nobody can know.
    func send(_ notice: WebhookNotice, to endpoint: WebhookTargets.Endpoint) async throws -> Failure? {
        let host = endpoint.url.host
        guard !client.policy.denies(host: host) else {
            return Failure(.blockedAddress, "the host \(host) is on the list sources.deny")
        }
        do throws(CurlError) {
            let response = try await client.perform(
                request(notice, endpoint), to: host, isTrusted: endpoint.isTrusted)
            return Failure(
                webhookAnswered: response.status, retryAfter: response.headers.first("Retry-After"),
                date: response.headers.first("Date"))
        } catch {
            // A client that is closed belongs to a worker that is leaving.
            if error.code == .cancelled || error.code == .closed { throw CancellationError() }
            return Failure(webhook: error)
        }
    }

    private func request(_ notice: WebhookNotice, _ endpoint: WebhookTargets.Endpoint) -> HTTPRequest {
        let timestamp = Int64(Timestamp.now.seconds)
        let signatures = endpoint.secrets.map {
            $0.signature(id: notice.id, timestamp: timestamp, body: notice.body)
        }
        var request = HTTPRequest(
            .post, endpoint.url.text,
            headers: [
                "Content-Type": Event.mediaType, "webhook-id": notice.id, "webhook-timestamp": "\(timestamp)",
                "webhook-signature": signatures.joined(separator: " "),
            ], body: notice.body)
        request.connectTimeout = timeout
        request.timeout = timeout
        request.stall = nil
        request.maxBytes = maximumResponseBytes
        request.maxRedirects = 0
        request.acceptsCompression = false
        return request
    }
}

extension Failure {
    /// What a response means for a webhook that wants a status of the 200s; nil for one. Only 410 says that it will never want any.
    init?(webhookAnswered status: Int, retryAfter: String? = nil, date: String? = nil) {
        guard !(200...299).contains(status) else { return nil }
        self.init(status == 410 ? .gone : .httpError, "the webhook answered \(status)")
        self.retryAfter = retryAfter.flatMap {
            RetryAfter.seconds(of: $0, date: date, now: Timestamp.now.seconds)
        }
    }

    /// What a request without a whole response means for a webhook; nil when its answer was good and only too long. What somebody may mend
    /// is tried again; an address that may not be dialled is not.
    init?(webhook error: CurlError) {
        if error.code == .tooLarge, let status = error.status {
            self.init(webhookAnswered: status)
            return
        }
        let code: FailureCode =
            switch error.code {
            case .refusedAddress: .blockedAddress
            case .nameNotResolved: .dnsError
            case .cannotConnect: .connectError
            case .tls: .tlsError
            case .timeout: .timeout
            case .badURL, .badRequest, .unsupportedScheme: .invalidJob
            default: .httpError
            }
        self.init(
            code, error.message, isRetryable: code != .blockedAddress && code != .invalidJob,
            cause: CurlError(error.code, error.message))
    }
}
