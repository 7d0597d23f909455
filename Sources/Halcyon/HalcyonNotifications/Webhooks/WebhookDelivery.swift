import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonSources
import Kafka
import Telemetry

/// Delivers one event to a webhook: immediately, after a backoff, or later through a retry topic. A webhook that cannot
/// be delivered goes to the dead-letter topic.
struct WebhookDelivery: Sendable {
    let post: WebhookHTTPRequest
    let options: WebhookOptions
    let topics: Topics
    let limiter: TargetLimiter
    let hooks: PurgeHookSender
    let outbox: AcknowledgedOutbox
    let refusals: Refusals
    let metrics: WebhookMetrics
    let hookMetrics: WebhookMetrics
    let log: Log

    /// The outcome of a delivery.
    private enum DeliveryOutcome {
        case delivered
        /// Events of this kind are not sent, or a purge has no tags.
        case unwanted
        case later(AttemptHistory, topic: Int, after: Double)
        case dead(JobError, AttemptHistory, RetryExhaustedReason)
    }

    /// Processes a record, and acknowledges it or returns it to the queue.
    func run(_ delivery: JobDelivery) async {
        do throws(KafkaError) {
            let notice: WebhookRequest
            do throws(JobError) {
                notice = try WebhookRequest(delivery.record, topics)
            } catch {
                guard delivery.claim() else { return delivery.returnToQueue() }
                return try await putAside(delivery, from: OriginalRecord(delivery.record), error, nil, nil)
            }
            // The only error is that the record was revoked.
            guard let fate = try? await fate(of: notice, delivery), delivery.claim() else {
                return delivery.returnToQueue()
            }
            try await complete(fate, notice, delivery)
        } catch {
            // The producer is closed because the notifier is shutting down. Another one repeats the delivery.
            log.error("could not record webhook outcome", ["error": "\(error)"])
            delivery.returnToQueue()
        }
    }

    /// Passes a purge to its receivers: a copy for each of them is written to the first topic for retries, so that each
    /// has attempts of its own.
    func distribute(_ delivery: JobDelivery, to receivers: [NotificationTarget]) async {
        guard delivery.claim() else { return delivery.returnToQueue() }
        let provenance = OriginalRecord(delivery.record)
        let message = RetryMessage(
            provenance: provenance, history: AttemptHistory(began: Timestamp.now.milliseconds), after: 0,
            hasStarted: false)
        let records = receivers.map { receiver in
            var record = message.record(of: delivery.record, to: topics.webhookRetries[0])
            record.headers.append(RecordHeader(EventPublisher.webhookHeader, receiver.text))
            return record
        }
        do throws(KafkaError) {
            do throws(KafkaError) {
                try await outbox.complete(delivery, publishing: records)
            } catch {
                // The topic may not exist.
                guard error.code != .closed else { throw error }
                let failure = JobError(.internal, "the purge cannot be distributed: \(error.message)", cause: error)
                try await putAside(delivery, from: provenance, failure, nil, nil)
            }
        } catch {
            // The producer is closed because the notifier is shutting down. Another one repeats this.
            log.error("could not distribute purge", ["error": "\(error)"])
            delivery.returnToQueue()
        }
    }

    /// The counters for a kind of receiver.
    private func metrics(of notice: WebhookRequest?) -> WebhookMetrics {
        if case .purgeHook = notice?.target { hookMetrics } else { metrics }
    }

    /// The retry policy of a receiver.
    private func policy(of notice: WebhookRequest) -> RetryPolicy {
        var policy = options.retries
        if case .purgeHook(let name) = notice.target, let attempts = hooks[name]?.hook.attempts {
            policy.attempts = attempts
        }
        return policy
    }

    /// - Throws: `CancellationError` if the record is to be returned to the queue.
    private func fate(of notice: WebhookRequest, _ delivery: JobDelivery) async throws -> DeliveryOutcome {
        switch notice.target {
        case .webhook: if let kind = notice.kind, !options.kinds.contains(kind) { return .unwanted }
        case .purgeHook: if notice.cacheTags.isEmpty { return .unwanted }
        }
        let retries = policy(of: notice)
        if notice.wait > 0 { try await wait(for: notice.wait, delivery) }
        var history = notice.history
        while true {
            let decision: RetryPolicy.Decision
            let failure: JobError
            if let found = try await attempt(notice, delivery) {
                guard let reason = found.failure else { return .delivered }
                failure = reason
                history.add(failure, at: Timestamp.now.milliseconds)
                decision = decide(failure, history, notice, retries)
            } else {
                // No request was made. This does not count as an attempt, so only the retry budget can end the
                // delivery.
                failure = JobError(.connectError, "the webhook's host is down or has too many requests waiting")
                var patient = retries
                patient.attempts = .max
                decision = decide(failure.retryAfter(atLeast: patient.inProcess), history, notice, patient)
            }
            switch decision {
            case .giveUp(let reason): return .dead(failure, history, reason)
            case .later(let topic, let seconds): return .later(history, topic: topic, after: seconds)
            case .now(let seconds):
                metrics(of: notice).count(.retried)
                log.debug("retrying failed webhook", fields(notice, failure, ["after": seconds]))
                try await wait(for: seconds, delivery)
            }
        }
    }

    /// Waits before an attempt.
    /// - Throws: `CancellationError` if the record is to be returned to the queue.
    private func wait(for seconds: Double, _ delivery: JobDelivery) async throws {
        guard delivery.release(until: ContinuousClock.now + .seconds(seconds)) else { throw CancellationError() }
        try await delivery.untilRecalled { try await Task.sleep(for: .seconds(seconds)) }
    }

    private func decide(
        _ failure: JobError, _ history: AttemptHistory, _ notice: WebhookRequest, _ policy: RetryPolicy
    ) -> RetryPolicy.Decision {
        policy.decide(
            failure,
            RetryPolicy.RetryContext(
                attempts: max(1, history.count), elapsed: history.elapsed(at: Timestamp.now.milliseconds),
                topic: notice.topic), delays: topics.webhookDelays.map { $0 / .seconds(1) })
    }

    /// The result of an attempt.
    private struct Attempt {
        /// The error, or nil if the webhook was delivered.
        let failure: JobError?

        init(failure: JobError?) { self.failure = failure }

        /// Creates the result for a receiver that is not in the settings. Another process accepted it, whose settings
        /// may be newer.
        init(unknown failure: JobError) {
            var failure = failure
            failure.isRetryable = true
            self.failure = failure
        }
    }

    /// Makes one request when the target's limits permit it.
    /// - Returns: The result, or nil if the delivery is to be postponed without a request.
    /// - Throws: `CancellationError` if the record is to be returned to the queue.
    private func attempt(_ notice: WebhookRequest, _ delivery: JobDelivery) async throws -> Attempt? {
        let endpoint: WebhookTargets.Endpoint
        switch notice.target {
        case .webhook(let webhook):
            do throws(JobError) {
                endpoint = try options.targets.endpoint(of: webhook)
            } catch {
                return Attempt(unknown: error)
            }
        case .purgeHook(let name):
            guard let batcher = hooks[name]?.batcher else {
                return Attempt(
                    unknown: JobError(
                        .invalidJob, "no purge hook has the name \(name); hooks are defined in purge.hooks"))
            }
            return try await report(notice, delivery, to: batcher)
        }
        let target = Origin(endpoint.url)
        guard try await delivery.untilRecalled({ try await limiter.acquire(target) }) else { return nil }
        var outcome = TargetLimiter.Breaker.Outcome.unknown
        defer { limiter.release(target, outcome) }
        guard delivery.claim() else { throw CancellationError() }
        let failure = try await post.send(notice, to: endpoint)
        outcome = failure == nil ? .success : .failure
        return Attempt(failure: failure)
    }

    /// Reports a purge to a hook, together with others.
    /// - Returns: The result, or nil if no request was made.
    /// - Throws: `CancellationError` if the record is to be returned to the queue.
    private func report(
        _ notice: WebhookRequest, _ delivery: JobDelivery, to batcher: PurgeHookBatcher
    ) async throws -> Attempt? {
        guard delivery.claim() else { throw CancellationError() }
        switch await batcher.report(PurgeNotice(id: notice.id, tags: notice.cacheTags)) {
        case .done(let failure): return Attempt(failure: failure)
        case .postponed: return nil
        case .unknown: throw CancellationError()
        }
    }

    // MARK: Completion

    /// - Throws: ``KafkaError`` if the producer is closed.
    private func complete(_ fate: DeliveryOutcome, _ notice: WebhookRequest, _ delivery: JobDelivery)
        async throws(KafkaError)
    {
        switch fate {
        case .unwanted: delivery.acknowledge()
        case .delivered:
            delivery.acknowledge()
            metrics(of: notice).count(.delivered)
            log.debug("webhook delivered", fields(notice))
        case .later(let history, let topic, let seconds):
            let message = RetryMessage(
                provenance: notice.provenance, history: history, after: seconds, hasStarted: false)
            do throws(KafkaError) {
                try await outbox.complete(
                    delivery, publishing: [message.record(of: delivery.record, to: topics.webhookRetries[topic])])
            } catch {
                // The message may be too large with its headers, or the topic may not exist.
                guard error.code != .closed else { throw error }
                let failure = JobError(.internal, "the webhook cannot be postponed: \(error.message)", cause: error)
                return try await putAside(delivery, from: notice.provenance, failure, history, .attempts, notice)
            }
            metrics(of: notice).count(history.count > notice.history.count ? .retried : .postponed)
            log.info(
                "webhook will be retried later",
                fields(
                    notice, history.attempts.last.map { JobError($0.code, $0.message) },
                    ["attempts": history.count, "through": topics.webhookRetries[topic], "after": seconds]))
        case .dead(let failure, let history, let reason):
            try await putAside(delivery, from: notice.provenance, failure, history, reason, notice)
        }
    }

    /// Writes the record to the dead-letter topic, where it can be inspected and replayed.
    private func putAside(
        _ delivery: JobDelivery, from provenance: OriginalRecord, _ failure: JobError, _ history: AttemptHistory?,
        _ reason: RetryExhaustedReason?, _ notice: WebhookRequest? = nil
    ) async throws(KafkaError) {
        let letter = DeadLetter.record(
            of: delivery.record, from: provenance, for: failure, after: history.flatMap { $0.count > 0 ? $0 : nil },
            reason, topics)
        let more: LogMetadata = ["given_up": reason?.rawValue, "attempts": history?.count]
        let forms = [[letter], [DeadLetter.shortened(letter)], []]
        let published = try await outbox.complete(delivery, publishingOneOf: forms, refusals)
        if forms[published].isEmpty {
            log.warning(
                "dead letter not written: its key and headers exceed Kafka's message size limit",
                fields(notice, nil, ["record": OriginalRecord(delivery.record).coordinates]))
        } else {
            metrics(of: notice).count(.dead)
        }
        log.warning("webhook given up", fields(notice, failure, more))
    }

    /// Returns the common fields of all log lines about a webhook. Of a URL only the origin is logged, because the rest
    /// may be a secret.
    private func fields(_ notice: WebhookRequest?, _ failure: JobError? = nil, _ more: LogMetadata = [:]) -> LogMetadata
    {
        let target: String? =
            switch notice?.target {
            case .webhook(.url(let url)): Origin(url).description
            case let target?: target.text
            case nil: nil
            }
        let common: LogMetadata = ["webhook": target, "event": notice?.id]
        return common.merging(LogMetadata(failure)).merging(more)
    }
}

/// The counters of deliveries to webhooks or to purge hooks.
struct WebhookMetrics: Sendable {
    /// The kind of receiver.
    enum Receiver {
        case webhook, purgeHook
    }

    private let webhooks: [WebhookOutcome: Counter]

    /// The outcome of a webhook delivery, temporary or final.
    enum WebhookOutcome: String, CaseIterable {
        /// The webhook responded with a 2xx status.
        case delivered
        /// A request failed and is retried.
        case retried
        /// The delivery was postponed without a request, because the target has too many requests in flight or its
        /// circuit breaker is open.
        case postponed
        /// The webhook was written to the dead-letter topic.
        case dead
    }

    init(_ metrics: Metrics, of receiver: Receiver) {
        let (name, help) =
            switch receiver {
            case .webhook: ("halcyon_webhooks_total", "Webhook deliveries, by outcome.")
            case .purgeHook: ("halcyon_purge_hooks_total", "Purges reported to hooks, by outcome.")
            }
        webhooks = Dictionary(
            uniqueKeysWithValues: WebhookOutcome.allCases.map { outcome in
                let counter = metrics.counter(name, help: help, labels: ["outcome": outcome.rawValue])
                return (outcome, counter)
            })
    }

    /// Counts a webhook.
    func count(_ outcome: WebhookOutcome) { webhooks[outcome]?.add() }
}
