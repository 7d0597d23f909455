import Formats
import HalcyonModel
import HalcyonNotify
import HalcyonSources
import HalcyonWorker
import ProgramSettings

extension ProgramOptions {
    /// Settings of webhooks and other notifications of events.
    static let notifySettings: [Setting<ProgramOptions>] = [
        Setting("notify.redis", \.notifiesRedis, .bool)
            .help(
                "Whether committed events are published on Redis' channels halcyon:events and halcyon:events:JOB too."),
        Setting("notify.maximumAge", \.pubSub.maximumAge, .seconds(in: .seconds(1) ... .days(30)))
            .help("How old an event may be that is still published there, as when Redis was away."),
        Setting("webhooks.secret", \.webhookSecrets, .webhookSecrets, isSecret: true)
            .help("What the other webhooks are signed with; several, with spaces between them, make a signature each."),
        Setting("webhooks.allow", \.webhookHosts, .list(of: .hostPattern))
            .help("Hosts (hooks.example.org, *.example.org) that jobs may name in URLs of webhooks. Unless set, none."),
        Setting("webhooks.types", \.webhookKinds, .list(of: .oneOf))
            .help("Of which events of a job its webhook is told."),
        Setting("webhooks.timeout", \.webhooks.timeout, .duration(in: .milliseconds(10) ... .seconds(600)))
            .help("Time for one request to a webhook."),
        Setting("webhooks.maximumResponseBytes", \.webhooks.maximumResponseBytes, .byteSize(in: 0...(64 << 20)))
            .help("How much of a webhook's answer is read; nobody looks at it."),
        Setting("webhooks.concurrency", \.webhooks.limits.concurrency, .integer(in: 1...1000))
            .help("Requests of a worker to one host of webhooks at once."),
        Setting("webhooks.queue", \.webhooks.limits.queue, .integer(in: 0...100_000))
            .help("How many more wait for that in a worker; others are put off."),
        Setting("webhooks.failures", \.webhooks.limits.failures, .integer(in: 1...1000))
            .help("Failures in a row after which a host counts as down: then one request at a time tries it."),
        Setting("webhooks.attempts", \.webhooks.retries.attempts, .integer(in: 1...1000))
            .help("How often a webhook is tried in all until it is put aside."),
        Setting("webhooks.base", \.webhooks.retries.base, .seconds(in: .milliseconds(1) ... .seconds(60)))
            .help("Up to how long it waits before the second attempt; it doubles with each."),
        Setting("webhooks.inProcess", \.webhooks.retries.inProcess, .seconds(in: .zero ... .seconds(60)))
            .help("The longest wait that the worker itself waits; what takes longer goes through a topic of webhooks."),
        Setting("webhooks.budget", \.webhooks.retries.budget, .seconds(in: .zero ... .days(30)))
            .help("For how long after its first attempt a webhook is tried."),
        Setting(
            "webhooks.delays", \.worker.topics.webhookDelays,
            .list(of: .duration(in: .milliseconds(10) ... .days(1)))
        )
        .help(
            "The longest waits in the topics of webhooks, which are named after them (webhooks.10s); the same for all workers."
        ),
    ]
}

extension Configuration {
    /// Options of a notifier that runs beside a worker.
    func notifier(beside worker: WorkerOptions) -> NotifierOptions {
        var notifier = NotifierOptions(topics: worker.topics, kafka: worker.kafka, redis: worker.redis)
        notifier.group = worker.group
        notifier.consumer = worker.consumer
        notifier.pubSub = options.notifiesRedis ? options.pubSub : nil
        notifier.webhooks = options.webhooks
        notifier.webhooks.targets = webhookTargets
        notifier.webhooks.kinds = Set(options.webhookKinds)
        notifier.policy = worker.sources.policy
        notifier.userAgent = worker.sources.userAgent
        return notifier
    }
}

extension WebhookTargets {
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
                    "webhooks.urls.\(name): needs a secret, webhooks.secrets.\(name) or webhooks.secret")
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
            throw ConfigurationError("webhooks.allow: URLs of jobs need a secret, webhooks.secret")
        }
        self.init(urls: urls, secretsByName: secrets, secrets: general, allow: allowed)
    }
}

extension ValueKind<[WebhookSecret]> {
    /// One secret or more.
    static var webhookSecrets: Self {
        let lengths = WebhookSecret.lengths
        return ValueKind(
            "whsec_ and the base64 of \(lengths.lowerBound) to \(lengths.upperBound) bytes, several with spaces between them",
            read: { text in
                let words = text.split(separator: " ")
                let secrets = words.compactMap { WebhookSecret(String($0)) }
                return secrets.count == words.count ? secrets : nil
            },
            write: { $0.map(\.text).joined(separator: " ") })
    }
}

extension ValueKind<HostPattern> {
    /// A host, or `*.` and the end of hosts.
    static var hostPattern: Self {
        ValueKind("a host (hooks.example.org, *.example.org, 192.0.2.1)") { HostPattern($0) }
    }
}
