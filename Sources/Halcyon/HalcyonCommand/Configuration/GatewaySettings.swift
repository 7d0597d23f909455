import HalcyonGateway
import HalcyonModel
import ProgramSettings

extension ProgramOptions {
    /// The gateway's settings.
    static let gatewaySettings: [Setting<ProgramOptions>] = [
        Setting("gateway.listen", \.gatewayListen, .list(of: .hostPort))
            .help(
                "Addresses (0.0.0.0:8080) where `halcyon gateway` answers. In `halcyon dev` a free port takes the place of one that is taken."
            ),
        Setting("gateway.open", \.gateway.access.isOpen, .bool)
            .help(
                "Whether a gateway without keys may listen where other machines reach it: everybody there may do everything, but for pages of origins that gateway.origins does not name."
            ),
        Setting("gateway.requiresExpiry", \.gateway.access.requiresExpiry, .bool)
            .help("Whether a signed URL must say when it ends."),
        Setting("gateway.origins", \.gateway.access.origins, .list(of: .text))
            .help(
                "Origins (https://example.org) whose pages may read answers (CORS), and have jobs run where no keys are asked for; * for all. Unless set, none."
            ),
        Setting("gateway.rate", \.gateway.access.limits.rate, .whole(in: 1...1_000_000))
            .help("Requests a second of one caller in the long run: of a key, or of an address without one."),
        Setting("gateway.burst", \.gateway.access.limits.burst, .whole(in: 1...1_000_000))
            .help("Requests of a caller at once before the rate counts."),
        Setting("gateway.concurrency", \.gateway.access.limits.concurrency, .integer(in: 1...100_000))
            .help("Requests of a caller under way at once."),
        Setting("gateway.callerStreams", \.gateway.access.limits.streams, .integer(in: 1...100_000))
            .help("Event streams of a caller at once."),
        Setting("gateway.mostCallers", \.gateway.access.limits.mostCallers, .integer(in: 1...10_000_000))
            .help("Callers that are known at once; more than that have one allowance together."),
        Setting("gateway.connections", \.gateway.limits.connections, .integer(in: 1...100_000))
            .help("Connections at once, event streams among them."),
        Setting("gateway.bodyBytes", \.gateway.limits.bodyBytes, .byteSize(in: 1024...(1 << 30)))
            .help("Bytes of a request, such as many jobs, one a line."),
        Setting("gateway.linesAtOnce", \.gateway.jobs.linesAtOnce, .integer(in: 1...1_000_000))
            .help("Jobs of one such request."),
        Setting("gateway.jobMemory", \.gateway.jobs.memory, .seconds(in: .seconds(1) ... .days(30)))
            .help("For how long after its last event /v1/jobs/ID knows a job that came by POST /v1/jobs."),
        Setting("gateway.sendTime", \.gateway.jobs.sendTime, .duration(in: .milliseconds(100) ... .seconds(50)))
            .help("How long the brokers may take to have a job. Then it is answered with 503, and never sent."),
        Setting("gateway.renderWait", \.gateway.render.wait, .duration(in: .milliseconds(100) ... .seconds(50)))
            .help("How long /v1/render waits for an image at most, and /v1/jobs/ID?wait= for a job."),
        Setting("gateway.imageMemory", \.gateway.shelf.time, .duration(in: .zero ... .seconds(60)))
            .help(
                "For how long an image that was read is given to others without asking Redis: so long may it outlive a purge that is not heard of. 0 for not at all."
            ),
        Setting("gateway.imageBytes", \.gateway.shelf.bytes, .byteSize(in: 0...(64 << 30)))
            .help("Bytes of all images that are kept so; those of at most 64 KiB count twice, with their answers."),
        Setting("gateway.formats", \.gateway.render.formats, .list(of: .oneOf))
            .help(
                "What format=auto becomes in /v1/render for clients that name it in Accept, the first that they name; others get what the source is."
            ),
        Setting("gateway.deadLetters", \.gateway.dead.most, .integer(in: 1...100_000))
            .help("Dead letters of one request, to /v1/dead or to be replayed."),
        Setting("gateway.deadBytes", \.gateway.dead.pageBytes, .byteSize(in: 1024...(64 << 20)))
            .help("Bytes of one page of dead letters: it ends with the letter that makes it longer."),
        Setting("gateway.deadTime", \.gateway.dead.time, .duration(in: .milliseconds(100) ... .seconds(50)))
            .help("How long dead letters are read for one request; what was found by then is answered."),
        Setting(
            "gateway.overviewInterval", \.gateway.overview.interval,
            .duration(in: .milliseconds(100) ... .seconds(3600))
        )
        .help("How often the gateway looks at lanes, workers and dead letters at most, however many ask."),
        Setting(
            "gateway.overviewPatience", \.gateway.overview.patience, .duration(in: .milliseconds(100) ... .seconds(10))
        )
        .help("How long it waits then for Kafka, for each thing that it asks; what is not known is left out."),

        // Event streams.
        Setting("gateway.streams", \.gateway.events.streams, .integer(in: 1...100_000))
            .help("Event streams at once, of all callers."),
        Setting("gateway.eventBytes", \.gateway.events.ringBytes, .byteSize(in: 65_536...(1 << 32)))
            .help(
                "Memory for the newest events: who comes back within what they reach costs Kafka nothing, who falls behind them is dropped."
            ),
        Setting("gateway.eventMemory", \.gateway.events.memory, .duration(in: .zero ... .days(1)))
            .help("How far back events are read at the start, for clients of a gateway that has gone."),
        Setting("gateway.replays", \.gateway.events.replays, .integer(in: 1...1000))
            .help("Event streams at once that are read from Kafka what they have missed; others wait for their turn."),
        Setting("gateway.keepAlive", \.gateway.events.keepAlive, .duration(in: .milliseconds(100) ... .seconds(3600)))
            .help("After how long without an event a stream is sent a sign of life."),
        Setting("gateway.patience", \.gateway.events.patience, .duration(in: .milliseconds(100) ... .seconds(3600)))
            .help("How long the client of an event stream may leave unread what was sent to it."),
        Setting("gateway.retry", \.gateway.events.retry, .duration(in: .zero ... .seconds(3600)))
            .help("After how long clients come back whose event stream has ended."),
        Setting(
            "gateway.partitionInterval", \.gateway.events.partitionInterval,
            .duration(in: .milliseconds(100) ... .seconds(3600))
        )
        .help("How often is looked whether the topic of events has more partitions."),
    ]
}

extension Configuration {
    /// A gateway's settings.
    func gateway() throws -> GatewayOptions {
        var gateway = options.gateway
        gateway.topics = topics
        gateway.kafka = kafka
        gateway.redis = try redis()
        gateway.group = options.worker.group
        gateway.reader = jobReader
        gateway.budget = options.worker.results.budget
        gateway.access.keys = try keys
        gateway.access.urlKeys = try urlKeys
        gateway.jobs.longestWait = gateway.render.wait
        return gateway
    }

    private var keys: [APIKey] {
        get throws(ConfigurationError) {
            let (secrets, scopes) = (options.gatewayKeys, options.gatewayScopes)
            for name in scopes.keys.sorted() where secrets[name] == nil {
                throw ConfigurationError("gateway.scopes.\(name): there is no gateway.keys.\(name)")
            }
            var keys: [APIKey] = []
            for (name, secret) in secrets.sorted(by: { $0.key < $1.key }) {
                guard secret.utf8.count >= 16, secret.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
                    throw ConfigurationError(
                        "gateway.keys.\(name): expected 16 or more visible ASCII characters; `openssl rand -hex 32` draws some"
                    )
                }
                if let other = secrets.first(where: { $0.key != name && $0.value == secret }) {
                    throw ConfigurationError(
                        "gateway.keys.\(name): has the secret of gateway.keys.\(other.key); who sends it would be either"
                    )
                }
                keys.append(APIKey(name: name, secret: secret, scopes: try Self.scopes(of: name, scopes[name])))
            }
            return keys
        }
    }

    private static func scopes(of name: String, _ text: String?) throws(ConfigurationError) -> Set<Scope> {
        guard let text else { return [.submit, .read] }
        var scopes: Set<Scope> = []
        for word in text.split(separator: ",").map({ $0.filter { $0 != " " } }) {
            guard let scope = Scope(rawValue: word) else {
                let words = Scope.allCases.map(\.rawValue).joined(separator: ", ")
                throw ConfigurationError("gateway.scopes.\(name): expected of \(words), found \(word)")
            }
            scopes.insert(scope)
        }
        guard !scopes.isEmpty else {
            throw ConfigurationError(
                "gateway.scopes.\(name): expected submit, read or admin, found none; take the key away if it may do nothing"
            )
        }
        return scopes
    }

    private var urlKeys: [String: [UInt8]] {
        get throws(ConfigurationError) {
            var keys: [String: [UInt8]] = [:]
            for (id, secret) in options.gatewayURLKeys.sorted(by: { $0.key < $1.key }) {
                guard secret.utf8.count >= 32 else {
                    throw ConfigurationError(
                        "gateway.urlKeys.\(id): expected 32 or more characters; `openssl rand -hex 32` draws some")
                }
                if let other = keys.first(where: { $0.value == Array(secret.utf8) }) {
                    throw ConfigurationError("gateway.urlKeys.\(id): has the secret of gateway.urlKeys.\(other.key)")
                }
                keys[id] = Array(secret.utf8)
            }
            return keys
        }
    }
}
