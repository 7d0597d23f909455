import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonSources
import Kafka
import Telemetry

/// Tells a webhook of one event: at once, again after a while, through a topic later on; and what nobody takes is put aside.
struct WebhookDelivery: Sendable {
    let post: WebhookPost
    let options: WebhookOptions
    let topics: Topics
    let gates: TargetGates
    let outbox: AcknowledgedOutbox
    let refusals: Refusals
    let metrics: WebhookMetrics
    let log: Log

    /// What comes of a notice that a notifier took.
    private enum Fate {
        case delivered
        /// Nobody wants to be told of such.
        case unwanted
        case later(AttemptHistory, topic: Int, after: Double)
        case dead(Failure, AttemptHistory, GivingUp)
    }

    /// Does all that is to be done about a record, and ends it or hands it back.
    func run(_ taken: TakenRecord) async {
        do throws(KafkaError) {
            let notice: WebhookNotice
            do throws(Failure) {
                notice = try WebhookNotice(taken.record, topics)
            } catch {
                guard taken.begin() else { return taken.handBack() }
                return try await putAside(taken, from: Provenance(taken.record), error, nil, nil)
            }
            // The only error is that the record was recalled.
            guard let fate = try? await fate(of: notice, taken), taken.begin() else { return taken.handBack() }
            try await settle(fate, notice, taken)
        } catch {
            // The producer is closed: the notifier is gone, and another one does it again.
            log.error("webhook not settled", ["error": "\(error)"])
            taken.handBack()
        }
    }

    /// - Throws: `CancellationError` when the record is to be handed back.
    private func fate(of notice: WebhookNotice, _ taken: TakenRecord) async throws -> Fate {
        if let kind = notice.kind, !options.kinds.contains(kind) { return .unwanted }
        if notice.wait > 0 { try await taken.untilRecalled { try await Task.sleep(for: .seconds(notice.wait)) } }
        var history = notice.history
        while true {
            let decision: RetryPolicy.Decision
            let failure: Failure
            if let found = try await attempt(notice, taken) {
                guard let reason = found.failure else { return .delivered }
                failure = reason
                history.add(failure, at: Timestamp.now.milliseconds)
                decision = decide(failure, history, notice, options.retries)
            } else {
                // It was not tried, which counts as no attempt, and so does not end it: the budget may.
                failure = Failure(.connectError, "the webhook's host is down, or has more to take than it does")
                var patient = options.retries
                patient.attempts = .max
                decision = decide(failure.notBefore(patient.inProcess), history, notice, patient)
            }
            switch decision {
            case .giveUp(let reason): return .dead(failure, history, reason)
            case .later(let topic, let seconds): return .later(history, topic: topic, after: seconds)
            case .now(let seconds):
                metrics.count(.retried)
                log.debug("webhook tried again", fields(notice, failure, ["after": seconds]))
                guard taken.rest() else { throw CancellationError() }
                try await taken.untilRecalled { try await Task.sleep(for: .seconds(seconds)) }
            }
        }
    }

    private func decide(
        _ failure: Failure, _ history: AttemptHistory, _ notice: WebhookNotice, _ policy: RetryPolicy
    ) -> RetryPolicy.Decision {
        policy.decide(
            failure,
            RetryPolicy.Trial(
                attempts: max(1, history.count), elapsed: history.elapsed(at: Timestamp.now.milliseconds),
                topic: notice.topic), delays: topics.webhookDelays.map { $0 / .seconds(1) })
    }

    /// How an attempt went.
    private struct Attempt {
        /// nil when the webhook was told.
        let failure: Failure?
    }

    /// Makes one request, when it is its turn.
    /// - Returns: how that went; nil when it is to be put off without one.
    /// - Throws: `CancellationError` when the record is to be handed back.
    private func attempt(_ notice: WebhookNotice, _ taken: TakenRecord) async throws -> Attempt? {
        let endpoint: WebhookTargets.Endpoint
        do throws(Failure) {
            endpoint = try options.targets.endpoint(of: notice.webhook)
        } catch {
            // Another worker took it, whose settings may be newer.
            var failure = error
            failure.isRetryable = true
            return Attempt(failure: failure)
        }
        let target = Origin(endpoint.url)
        guard try await taken.untilRecalled({ try await gates.enter(target) }) else { return nil }
        var outcome = TargetGates.Breaker.Outcome.unknown
        defer { gates.leave(target, outcome) }
        guard taken.begin() else { throw CancellationError() }
        let failure = try await post.send(notice, to: endpoint)
        outcome = failure == nil ? .success : .failure
        return Attempt(failure: failure)
    }

    // MARK: The end

    /// - Throws: ``KafkaError`` when the producer is closed.
    private func settle(_ fate: Fate, _ notice: WebhookNotice, _ taken: TakenRecord) async throws(KafkaError) {
        switch fate {
        case .unwanted: taken.end()
        case .delivered:
            taken.end()
            metrics.count(.delivered)
            log.debug("webhook delivered", fields(notice))
        case .later(let history, let topic, let seconds):
            let message = RetryMessage(
                provenance: notice.provenance, history: history, after: seconds, hasStarted: false)
            do throws(KafkaError) {
                try await outbox.settle(
                    taken, telling: [message.record(of: taken.record, to: topics.webhookRetries[topic])])
            } catch {
                // With its headers it is too large, or the topic is not there.
                guard error.code != .closed else { throw error }
                let failure = Failure(.internal, "it cannot be put off: \(error.message)", cause: error)
                return try await putAside(taken, from: notice.provenance, failure, history, .attempts, notice)
            }
            metrics.count(history.count > notice.history.count ? .retried : .postponed)
            log.info(
                "webhook tried again later",
                fields(
                    notice, history.attempts.last.map { Failure($0.code, $0.message) },
                    ["attempts": history.count, "through": topics.webhookRetries[topic], "after": seconds]))
        case .dead(let failure, let history, let reason):
            try await putAside(taken, from: notice.provenance, failure, history, reason, notice)
        }
    }

    /// Writes it to the dead letters, where it can be looked at and replayed.
    private func putAside(
        _ taken: TakenRecord, from provenance: Provenance, _ failure: Failure, _ history: AttemptHistory?,
        _ reason: GivingUp?, _ notice: WebhookNotice? = nil
    ) async throws(KafkaError) {
        let letter = DeadLetter.record(
            of: taken.record, from: provenance, for: failure, after: history.flatMap { $0.count > 0 ? $0 : nil },
            reason, topics)
        let more: LogFields = ["given_up": reason?.rawValue, "attempts": history?.count]
        try await outbox.settle(taken, tellingOneOf: [[letter], [DeadLetter.shortened(letter)]], refusals)
        metrics.count(.dead)
        log.warning("webhook given up", fields(notice, failure, more))
    }

    /// What every line about a webhook carries. Of a URL no more than the host: the rest may be a secret.
    private func fields(_ notice: WebhookNotice?, _ failure: Failure? = nil, _ more: LogFields = [:]) -> LogFields {
        let target: String? =
            switch notice?.webhook {
            case .name(let name): name
            case .url(let url): Origin(url).description
            case nil: nil
            }
        let common: LogFields = ["webhook": target, "event": notice?.id]
        return common.merging(LogFields(failure)).merging(more)
    }
}

/// What senders of webhooks count.
struct WebhookMetrics: Sendable {
    private let webhooks: [WebhookOutcome: Counter]

    /// What becomes of a webhook, for now or for good.
    enum WebhookOutcome: String, CaseIterable {
        /// It was answered with a status of the 200s.
        case delivered
        /// A request failed, and another one follows.
        case retried
        /// It was put off without a request: its target has enough of them, or is down.
        case postponed
        /// It was put aside.
        case dead
    }

    init(_ metrics: Metrics) {
        webhooks = Dictionary(
            uniqueKeysWithValues: WebhookOutcome.allCases.map { outcome in
                let counter = metrics.counter(
                    "halcyon_webhooks_total", help: "Webhooks, by what became of them, for now or for good.",
                    labels: ["outcome": outcome.rawValue])
                return (outcome, counter)
            })
    }

    /// Counts a webhook.
    func count(_ outcome: WebhookOutcome) { webhooks[outcome]?.add() }
}

extension TakenRecord {
    /// Does something that must not hold up a partition that goes.
    /// - Throws: what `body` throws; `CancellationError` when the record is recalled first.
    func untilRecalled<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let task = Task { try await body() }
        onRecall { task.cancel() }
        return try await task.value
    }
}
