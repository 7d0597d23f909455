import HalcyonModel
import HalcyonNotify
import HalcyonWorker
import Settings

/// Who is told of events besides those who read their topic.
extension Keys {
    private static let webhooks = WebhookOptions()

    static let notifyRedis = SettingKey(
        "notify.redis", .bool, default: true,
        help: "Whether committed events are published on Redis' channels halcyon:events and halcyon:events:JOB too.")
    static let notifyMaximumAge = SettingKey(
        "notify.maximumAge", .duration(in: .seconds(1) ... .seconds(2_592_000)),
        default: .seconds(PubSubOptions().maximumAge),
        help: "How old an event may be that is still published there, as when Redis was away.")
    static let webhookURLs = SettingMap(
        "webhooks.urls", variables: "WEBHOOKS_URL_",
        help: "Webhooks by name: their http or https URLs, which need not be public.", isSecret: { _ in false })
    static let webhookSecrets = SettingMap(
        "webhooks.secrets", variables: "WEBHOOKS_SECRET_",
        help: "Secrets of webhooks by name, where they have one of their own.", isSecret: { _ in true })
    static let webhookSecret = SettingKey(
        "webhooks.secret", .webhookSecrets, default: [],
        help: "What the other webhooks are signed with; several, with spaces between them, make a signature each.",
        isSecret: true)
    static let webhookAllow = SettingKey(
        "webhooks.allow", .list(of: .hostPattern), default: [],
        help: "Hosts (hooks.example.org, *.example.org) that jobs may name in URLs of webhooks. Unless set, none.")
    static let webhookTypes = SettingKey(
        "webhooks.types", .list(of: .oneOf), default: Event.Kind.allCases.filter(webhooks.kinds.contains),
        help: "Of which events of a job its webhook is told.")
    static let webhookTimeout = SettingKey(
        "webhooks.timeout", .duration(in: .milliseconds(10) ... .seconds(600)), default: webhooks.timeout,
        help: "Time for one request to a webhook.")
    static let webhookResponseBytes = SettingKey(
        "webhooks.maximumResponseBytes", .byteSize(in: 0...(64 << 20)), default: webhooks.maximumResponseBytes,
        help: "How much of a webhook's answer is read; nobody looks at it.")
    static let webhookConcurrency = SettingKey(
        "webhooks.concurrency", .integer(in: 1...1000), default: webhooks.limits.concurrency,
        help: "Requests of a worker to one host of webhooks at once.")
    static let webhookQueue = SettingKey(
        "webhooks.queue", .integer(in: 0...100_000), default: webhooks.limits.queue,
        help: "How many more wait for that in a worker; others are put off.")
    static let webhookFailures = SettingKey(
        "webhooks.failures", .integer(in: 1...1000), default: webhooks.limits.failures,
        help: "Failures in a row after which a host counts as down: then one request at a time tries it.")
    static let webhookAttempts = SettingKey(
        "webhooks.attempts", .integer(in: 1...1000), default: webhooks.retries.attempts,
        help: "How often a webhook is tried in all until it is put aside.")
    static let webhookBase = SettingKey(
        "webhooks.base", .duration(in: .milliseconds(1) ... .seconds(60)), default: .seconds(webhooks.retries.base),
        help: "Up to how long it waits before the second attempt; it doubles with each.")
    static let webhookInProcess = SettingKey(
        "webhooks.inProcess", .duration(in: .zero ... .seconds(60)), default: .seconds(webhooks.retries.inProcess),
        help: "The longest wait that the worker itself waits; what takes longer goes through a topic of webhooks.")
    static let webhookBudget = SettingKey(
        "webhooks.budget", .duration(in: .zero ... .seconds(2_592_000)), default: .seconds(webhooks.retries.budget),
        help: "For how long after its first attempt a webhook is tried.")
    static let webhookDelays = SettingKey(
        "webhooks.delays", .list(of: .duration(in: .milliseconds(10) ... .seconds(86_400))),
        default: Defaults.worker.topics.webhookDelays,
        help:
            "The longest waits in the topics of webhooks, which are named after them (webhooks.10s); the same for all workers."
    )

    /// All of them, in the order in which they are listed.
    static let notifying: [any AnySettingKey] = [
        notifyRedis, notifyMaximumAge, webhookSecret, webhookAllow, webhookTypes, webhookTimeout, webhookResponseBytes,
        webhookConcurrency, webhookQueue, webhookFailures, webhookAttempts, webhookBase, webhookInProcess,
        webhookBudget, webhookDelays,
    ]
}

extension Configuration {
    /// What a notifier is told that runs beside a worker.
    func notifier(beside worker: WorkerOptions) -> NotifierOptions {
        var options = NotifierOptions(topics: worker.topics, kafka: worker.kafka, redis: worker.redis)
        options.group = worker.group
        options.consumer = worker.consumer
        options.pubSub = pubSub
        options.webhooks = webhooks
        options.policy = worker.sources.policy
        options.userAgent = worker.sources.userAgent
        return options
    }

    private var pubSub: PubSubOptions? {
        guard settings[Keys.notifyRedis] else { return nil }
        var options = PubSubOptions()
        options.maximumAge = settings[Keys.notifyMaximumAge] / .seconds(1)
        return options
    }

    private var webhooks: WebhookOptions {
        var options = WebhookOptions()
        options.targets = webhookTargets
        options.kinds = Set(settings[Keys.webhookTypes])
        options.timeout = settings[Keys.webhookTimeout]
        options.maximumResponseBytes = settings[Keys.webhookResponseBytes]
        options.limits.concurrency = settings[Keys.webhookConcurrency]
        options.limits.queue = settings[Keys.webhookQueue]
        options.limits.failures = settings[Keys.webhookFailures]
        options.retries.attempts = settings[Keys.webhookAttempts]
        options.retries.base = settings[Keys.webhookBase] / .seconds(1)
        options.retries.inProcess = settings[Keys.webhookInProcess] / .seconds(1)
        options.retries.budget = settings[Keys.webhookBudget] / .seconds(1)
        return options
    }
}

extension WebhookTargets {
    /// - Throws: ``ConfigurationError`` that names the setting.
    init(_ settings: Settings) throws(ConfigurationError) {
        let (own, general) = (settings[Keys.webhookSecrets], settings[Keys.webhookSecret])
        var urls: [String: WebURL] = [:]
        var secrets: [String: [WebhookSecret]] = [:]
        for (name, text) in settings[Keys.webhookURLs] {
            guard Webhook.isName(name) else {
                throw ConfigurationError(
                    "webhooks.urls: expected a name of letters, digits, dots, hyphens and underscores, found \(name)")
            }
            guard let url = try? WebURL(text), !url.hasUser else {
                throw ConfigurationError("webhooks.urls.\(name): expected an http or https URL without a user")
            }
            guard own[name] != nil || !general.isEmpty else {
                throw ConfigurationError(
                    "webhooks.urls.\(name): needs a secret, webhooks.secrets.\(name) or webhooks.secret")
            }
            urls[name] = url
        }
        for (name, text) in own {
            guard urls[name] != nil else {
                throw ConfigurationError("webhooks.secrets.\(name): there is no webhooks.urls.\(name)")
            }
            let kind = SettingKind<[WebhookSecret]>.webhookSecrets
            guard let found = kind.value(of: text), !found.isEmpty else {
                throw ConfigurationError("webhooks.secrets.\(name): expected \(kind.expectation)")
            }
            secrets[name] = found
        }
        let allowed = settings[Keys.webhookAllow]
        guard allowed.isEmpty || !general.isEmpty else {
            throw ConfigurationError("webhooks.allow: URLs of jobs need a secret, webhooks.secret")
        }
        self.init(urls: urls, secretsByName: secrets, secrets: general, allow: allowed)
    }
}

extension SettingKind<[WebhookSecret]> {
    /// One secret or more.
    static var webhookSecrets: Self {
        let lengths = WebhookSecret.lengths
        return SettingKind(
            "whsec_ and the base64 of \(lengths.lowerBound) to \(lengths.upperBound) bytes, several with spaces between them",
            scalar: { text in
                let words = text.split(separator: " ")
                let secrets = words.compactMap { WebhookSecret(String($0)) }
                return secrets.count == words.count ? secrets : nil
            },
            write: { $0.map(\.text).joined(separator: " ") })
    }
}
