import Formats
import HalcyonModel
import HalcyonNotifications
import HalcyonSources
import HalcyonWorker
import ProgramSettings

extension ProgramOptions {
    /// Settings of webhooks and other notifications of events.
    static let notifySettings: [Setting<ProgramOptions>] = [
        Setting("notifications.redis", \.notifiesRedis, .bool)
            .help("Publish committed events on the Redis channels halcyon:events and halcyon:events:JOB."),
        Setting("notifications.maximumAge", \.pubSub.maximumAge, .seconds(in: .seconds(1) ... .days(30)))
            .help("Maximum age of an event that is published to Redis, such as after an outage."),
        Setting("webhooks.secret", \.webhookSecrets, .webhookSecrets, isSecret: true)
            .help("Signing secrets of webhooks without a separate one, separated by spaces. Each adds a signature."),
        Setting("webhooks.allow", \.webhookHosts, .list(of: .hostPattern))
            .help("Hosts (hooks.example.org, *.example.org) that jobs may use in webhook URLs. None by default."),
        Setting("webhooks.types", \.webhookKinds, .list(of: .oneOf))
            .help("Types of events that are sent to webhooks. Those of purges are sent to all webhooks.urls."),
        Setting("webhooks.timeout", \.webhooks.timeout, .duration(in: .milliseconds(10) ... .seconds(600)))
            .help("Timeout of one webhook request."),
        Setting("webhooks.maximumResponseBytes", \.webhooks.maximumResponseBytes, .byteSize(in: 0...(64 << 20)))
            .help("Maximum number of bytes of a webhook response that are read and discarded."),
        Setting("webhooks.concurrency", \.webhooks.limits.concurrency, .integer(in: 1...1000))
            .help("Maximum number of concurrent requests of a worker to one webhook host."),
        Setting("webhooks.queue", \.webhooks.limits.queue, .integer(in: 0...100_000))
            .help("Maximum number of further requests that wait for it in a worker; others are delayed."),
        Setting("webhooks.failures", \.webhooks.limits.failures, .integer(in: 1...1000))
            .help(
                "Consecutive failures that open the circuit breaker of a host; then one request at a time probes it."),
        Setting("webhooks.attempts", \.webhooks.retries.attempts, .integer(in: 1...1000))
            .help("Maximum number of attempts before a webhook becomes a dead letter."),
        Setting("webhooks.baseDelay", \.webhooks.retries.base, .seconds(in: .milliseconds(1) ... .seconds(60)))
            .help("Maximum backoff before the second attempt; it doubles with each attempt."),
        Setting("webhooks.maximumInProcessDelay", \.webhooks.retries.inProcess, .seconds(in: .zero ... .seconds(60)))
            .help("Longest backoff that is waited for in the worker; longer ones use a webhook topic."),
        Setting("webhooks.budget", \.webhooks.retries.budget, .seconds(in: .zero ... .days(30)))
            .help("Time after the first attempt during which a webhook is retried."),
        Setting(
            "webhooks.delays", \.worker.topics.webhookDelays,
            .list(of: .duration(in: .milliseconds(10) ... .days(1)))
        )
        .help(
            """
            Delays of the webhook topics, which are named after them (webhooks.10s). They must be the same for all \
            workers.
            """),
    ]
}

extension Configuration {
    /// Creates the options of a notifier that runs in the same process as a worker.
    func notifier(beside worker: WorkerOptions) -> NotifierOptions {
        var notifier = NotifierOptions(topics: worker.topics, kafka: worker.kafka, redis: worker.redis)
        notifier.group = worker.group
        notifier.consumer = worker.consumer
        notifier.consumer.lookahead = 0
        notifier.pubSub = options.notifiesRedis ? options.pubSub : nil
        notifier.webhooks = options.webhooks
        notifier.webhooks.targets = webhookTargets
        notifier.webhooks.kinds = Set(options.webhookKinds)
        notifier.purgeHooks = purgeHooks
        notifier.policy = worker.sources.policy
        notifier.userAgent = worker.sources.userAgent
        return notifier
    }
}

extension PurgeHook {
    /// Creates the hooks by name.
    /// - Throws: ``ConfigurationError`` that names the setting without its value.
    static func all(_ options: ProgramOptions) throws(ConfigurationError) -> [String: PurgeHook] {
        var hooks: [String: PurgeHook] = [:]
        for (name, text) in options.purgeHooks.sorted(by: { $0.key < $1.key }) {
            guard Webhook.isName(name) else {
                throw ConfigurationError(
                    "purge.hooks: expected a name of letters, digits, dots, hyphens and underscores, found \(name)")
            }
            do throws(PurgeHookError) {
                hooks[name] = try PurgeHook(definition: text)
            } catch {
                throw ConfigurationError("purge.hooks.\(name): \(error)")
            }
        }
        return hooks
    }
}

extension WebhookTargets {
    /// Creates the webhook targets.
    /// - Throws: ``ConfigurationError`` that names the setting.
    init(_ options: ProgramOptions) throws(ConfigurationError) {
        let (own, general) = (options.webhookOwnSecrets, options.webhookSecrets)
        var urls: [String: WebURL] = [:]
        var secrets: [String: [WebhookSecret]] = [:]
        for (name, text) in options.webhookURLs.sorted(by: { $0.key < $1.key }) {
            guard Webhook.isName(name) else {
                throw ConfigurationError(
                    "webhooks.urls: expected a name of letters, digits, dots, hyphens and underscores, found \(name)")
            }
            guard let url = try? WebURL(text), !url.hasUser else {
                throw ConfigurationError("webhooks.urls.\(name): expected an http or https URL without a user")
            }
            guard own[name] != nil || !general.isEmpty else {
                throw ConfigurationError(
                    "webhooks.urls.\(name): needs a secret; set webhooks.secrets.\(name) or webhooks.secret")
            }
            urls[name] = url
        }
        for (name, text) in own.sorted(by: { $0.key < $1.key }) {
            guard urls[name] != nil else {
                throw ConfigurationError("webhooks.secrets.\(name): there is no webhooks.urls.\(name)")
            }
            let kind = ValueKind<[WebhookSecret]>.webhookSecrets
            guard let found = kind.value(of: text), !found.isEmpty else {
                throw ConfigurationError("webhooks.secrets.\(name): expected \(kind.expectation)")
            }
            secrets[name] = found
        }
        let allowed = options.webhookHosts
        guard allowed.isEmpty || !general.isEmpty else {
            throw ConfigurationError("webhooks.allow: webhook URLs of jobs need a secret; set webhooks.secret")
        }
        self.init(urls: urls, secretsByName: secrets, secrets: general, allow: allowed)
    }
}

extension ValueKind<[WebhookSecret]> {
    /// A value kind for one or more secrets.
    static var webhookSecrets: Self {
        let lengths = WebhookSecret.lengths
        return ValueKind(
            "whsec_ and the base64 of \(lengths.lowerBound) to \(lengths.upperBound) bytes, separated by spaces",
            read: { text in
                let words = text.split(separator: " ")
                let secrets = words.compactMap { WebhookSecret(String($0)) }
                return secrets.count == words.count ? secrets : nil
            },
            write: { $0.map(\.text).joined(separator: " ") })
    }
}

extension ValueKind<HostPattern> {
    /// A value kind for a host, or `*.` and a suffix.
    static var hostPattern: Self {
        ValueKind("a host (hooks.example.org, *.example.org, 192.0.2.1)") { HostPattern($0) }
    }
}
