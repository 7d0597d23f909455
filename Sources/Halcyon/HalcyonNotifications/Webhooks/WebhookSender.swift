import Curl
import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import HalcyonSources
import Kafka
import Telemetry

/// Consumes committed events that have a webhook, purges, and webhooks to be retried.
final class WebhookSender: Sendable {
    let consumer: JobConsumer
    private let client: SSRFSafeClient
    private let producer: Producer
    private let hooks: PurgeHookSender

    init(
        _ options: NotifierOptions, log: Log, metrics: Metrics, onEnd: @escaping @Sendable (KafkaError) -> Void
    ) throws(KafkaError) {
        let log = log.with(["of": "webhooks"])
        let (topics, webhooks) = (options.topics, options.webhooks)
        producer = try Producer(properties: options.kafka.producer, onFatal: onEnd)
        client = SSRFSafeClient(options.policy, userAgent: options.userAgent)
        let post = WebhookHTTPRequest(
            client: client, timeout: webhooks.timeout, maximumResponseBytes: webhooks.maximumResponseBytes)
        let limiter = TargetLimiter(webhooks.limits)
        hooks = PurgeHookSender(options.purgeHooks, post, limiter)
        let delivery = WebhookDelivery(
            post: post, options: webhooks, topics: topics, limiter: limiter, hooks: hooks,
            outbox: AcknowledgedOutbox(producer), refusals: Refusals(log: log),
            metrics: WebhookMetrics(metrics, of: .webhook), hookMetrics: WebhookMetrics(metrics, of: .purgeHook),
            log: log)
        let receivers = options.purgeReceivers
        var limits = options.consumer
        limits.delayed = Set(topics.webhookRetries)
        consumer = JobConsumer(options: limits, of: "webhooks", log: log, metrics: metrics) { records in
            for record in records {
                if WebhookRequest.isIn(record.record, topics) {
                    Task { await delivery.run(record) }
                } else if !receivers.isEmpty, DecodedEvent.mayBePurge(record.record.value ?? []) {
                    Task { await delivery.distribute(record, to: receivers) }
                } else if record.claim() {
                    record.acknowledge()
                } else {
                    record.returnToQueue()
                }
            }
        }
    }

    func start(_ options: NotifierOptions) async throws(KafkaError) {
        try await consumer.start(
            topics: options.webhookGroup.topics,
            properties: options.kafka.notifier(
                group: options.webhookGroup.name, revocationTimeout: options.consumer.revocationTimeout),
            events: ClientCallbacks())
    }

    func shutdown(gracePeriod grace: Duration) async {
        await hooks.close()
        _ = await consumer.shutdown(gracePeriod: grace)
        await client.close()
        await producer.close()
    }
}

/// Sends events to webhooks, each in a signed request as defined by the Standard Webhooks specification (1.0.0), and
/// requests to purge hooks.
struct WebhookHTTPRequest: Sendable {
    let client: SSRFSafeClient
    let timeout: Duration
    let maximumResponseBytes: Int

    /// - Returns: The error, or nil if the webhook was delivered.
    /// - Throws: `CancellationError` if the outcome is unknown.
    func send(_ notice: WebhookRequest, to endpoint: WebhookTargets.Endpoint) async throws -> JobError? {
        try await send(request(notice, endpoint), to: endpoint.url.host, isTrusted: endpoint.isTrusted)
    }

    /// Sends a request with the limits of webhooks.
    /// - Returns: The error, or nil if the response had a 2xx status.
    /// - Throws: `CancellationError` if the outcome is unknown.
    func send(_ request: HTTPRequest, to host: String, isTrusted: Bool) async throws -> JobError? {
        guard !client.policy.denies(host: host) else {
            return JobError(.blockedAddress, "the host \(host) is denied by sources.deny")
        }
        do throws(CurlError) {
            var request = request
            request.connectTimeout = timeout
            request.timeout = timeout
            request.stall = nil
            request.maxBytes = maximumResponseBytes
            request.maxRedirects = 0
            request.acceptsCompression = false
            let response = try await client.execute(request, to: host, isTrusted: isTrusted)
            return JobError(
                webhookAnswered: response.status, retryAfter: response.headers.first("Retry-After"),
                date: response.headers.first("Date"))
        } catch {
            // A closed client belongs to a notifier that is shutting down.
            if error.code == .cancelled || error.code == .closed { throw CancellationError() }
            return JobError(webhook: error)
        }
    }

    private func request(_ notice: WebhookRequest, _ endpoint: WebhookTargets.Endpoint) -> HTTPRequest {
        let timestamp = Int64(Timestamp.now.seconds)
        let signatures = endpoint.secrets.map {
            $0.signature(id: notice.id, timestamp: timestamp, body: notice.body)
        }
        return HTTPRequest(
            .post, endpoint.url.text,
            headers: [
                "Content-Type": Event.mediaType, "webhook-id": notice.id, "webhook-timestamp": "\(timestamp)",
                "webhook-signature": signatures.joined(separator: " "),
            ], body: notice.body)
    }
}

/// The configured purge hooks.
struct PurgeHookSender: Sendable {
    private let hooks: [String: (hook: PurgeHook, batcher: PurgeHookBatcher)]

    init(_ hooks: [String: PurgeHook], _ post: WebhookHTTPRequest, _ limiter: TargetLimiter) {
        self.hooks = hooks.mapValues { hook in
            let target = Origin(hook.url)
            let batcher = PurgeHookBatcher(hook.batch) { batch in
                // The task is never cancelled.
                guard (try? await limiter.acquire(target)) == true else { return .postponed }
                var outcome = TargetLimiter.Breaker.Outcome.unknown
                defer { limiter.release(target, outcome) }
                do {
                    let failure = try await post.send(
                        hook.request(for: batch), to: hook.url.host, isTrusted: true)
                    outcome = failure == nil ? .success : .failure
                    return .done(failure)
                } catch {
                    return .unknown
                }
            }
            return (hook, batcher)
        }
    }

    /// The hook with a name, and what collects its purges; nil if this process does not know it.
    subscript(name: String) -> (hook: PurgeHook, batcher: PurgeHookBatcher)? { hooks[name] }

    /// Sends the purges that wait for others.
    func close() async { for (_, batcher) in hooks.values { await batcher.close() } }
}

extension JobError {
    /// Creates the error for a response, or nil for a 2xx status. Only status 410 means that the webhook is gone
    /// permanently.
    init?(webhookAnswered status: Int, retryAfter: String? = nil, date: String? = nil) {
        guard !(200...299).contains(status) else { return nil }
        self.init(status == 410 ? .gone : .httpError, "the webhook answered \(status)")
        self.retryAfter = retryAfter.flatMap {
            RetryAfter.seconds(of: $0, date: date, now: Timestamp.now.seconds)
        }
    }

    /// Creates the error for a request without a complete response, or nil if the response had a 2xx status and was
    /// only too long. Errors that can be fixed on the other side are retried. A blocked address is not.
    init?(webhook error: CurlError) {
        if error.code == .tooLarge, let status = error.status {
            self.init(webhookAnswered: status)
            return
        }
        let code: JobErrorCode =
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
