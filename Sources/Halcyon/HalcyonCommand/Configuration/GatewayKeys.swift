import Glibc
import HTTPServer
import HalcyonGateway
import HalcyonModel
import Settings

/// What the gateway is told.
extension Keys {
    private static let gateway = (
        jobs: JobsOptions(), render: RenderOptions(), access: AccessOptions(), shelf: ShelfOptions(),
        limits: HTTPServer.Limits(), dead: DeadOptions(), overview: OverviewOptions()
    )

    static let gatewayListen = SettingKey(
        "gateway.listen", .list(of: .hostPort), default: [HostPort(host: "127.0.0.1", port: 8080)],
        help:
            "Addresses (0.0.0.0:8080) where `halcyon gateway` answers. In `halcyon dev` a free port takes the place of one that is taken."
    )
    static let gatewayBodyBytes = SettingKey(
        "gateway.bodyBytes", .byteSize(in: 1024...(1 << 30)), default: 64 << 20,
        help: "Bytes of a request, such as many jobs, one a line.")
    static let gatewayLines = SettingKey(
        "gateway.linesAtOnce", .integer(in: 1...1_000_000), default: gateway.jobs.linesAtOnce,
        help: "Jobs of one such request.")
    static let gatewayConnections = SettingKey(
        "gateway.connections", .integer(in: 1...100_000), default: gateway.limits.connections,
        help: "Connections at once, event streams among them.")
    static let gatewayJobMemory = SettingKey(
        "gateway.jobMemory", .duration(in: .seconds(1) ... .seconds(2_592_000)), default: .seconds(gateway.jobs.memory),
        help: "For how long after its last event /v1/jobs/ID knows a job that came by POST /v1/jobs.")
    static let gatewaySendTime = SettingKey(
        "gateway.sendTime", .duration(in: .milliseconds(100) ... .seconds(50)), default: gateway.jobs.sendTime,
        help: "How long the brokers may take to have a job. Then it is answered with 503, and never sent.")
    static let gatewayWait = SettingKey(
        "gateway.renderWait", .duration(in: .milliseconds(100) ... .seconds(50)), default: gateway.render.wait,
        help: "How long /v1/render waits for an image at most, and /v1/jobs/ID?wait= for a job.")
    static let gatewayFormats = SettingKey(
        "gateway.formats", .list(of: .oneOf), default: gateway.render.formats,
        help:
            "What format=auto becomes in /v1/render for clients that name it in Accept, the first that they name; others get what the source is."
    )

    static let gatewayImageMemory = SettingKey(
        "gateway.imageMemory", .duration(in: .zero ... .seconds(60)), default: gateway.shelf.time,
        help:
            "For how long an image that was read is given to others without asking Redis: so long may it outlive a purge that is not heard of. 0 for not at all."
    )
    static let gatewayImageBytes = SettingKey(
        "gateway.imageBytes", .byteSize(in: 0...(64 << 30)), default: gateway.shelf.bytes,
        help: "Bytes of all images that are kept so; those of at most 64 KiB count twice, with their answers.")
    static let gatewayKeys = SettingMap(
        "gateway.keys", variables: "GATEWAY_KEYS_",
        help:
            "Keys by name: the secrets that their bearers send, each of 16 or more visible ASCII characters, drawn at random.",
        isSecret: { _ in true })
    static let gatewayScopes = SettingMap(
        "gateway.scopes", variables: "GATEWAY_SCOPES_",
        help:
            "What the bearer of a key may do, by its name: of submit, read and admin, with commas between them; submit,read unless set.",
        isSecret: { _ in false })
    static let gatewayURLKeys = SettingMap(
        "gateway.urlKeys", variables: "GATEWAY_URL_KEYS_",
        help:
            "Secrets of signed URLs by their keyId, each of 32 or more characters; several while one takes another's place. Without gateway.keys such URLs are then all that lets in.",
        isSecret: { _ in true })
    static let gatewayOpen = SettingKey(
        "gateway.open", .bool, default: gateway.access.isOpen,
        help:
            "Whether a gateway without keys may listen where other machines reach it: everybody there may do everything, but for pages of origins that gateway.origins does not name."
    )
    static let gatewayRequiresExpiry = SettingKey(
        "gateway.requiresExpiry", .bool, default: gateway.access.requiresExpiry,
        help: "Whether a signed URL must say when it ends.")
    static let gatewayOrigins = SettingKey(
        "gateway.origins", .list(of: .string), default: gateway.access.origins,
        help:
            "Origins (https://example.org) whose pages may read answers (CORS), and have jobs run where no keys are asked for; * for all. Unless set, none."
    )
    static let gatewayRate = SettingKey(
        "gateway.rate", .integer(in: 1...1_000_000), default: Int(gateway.access.limits.rate),
        help: "Requests a second of one caller in the long run: of a key, or of an address without one.")
    static let gatewayBurst = SettingKey(
        "gateway.burst", .integer(in: 1...1_000_000), default: Int(gateway.access.limits.burst),
        help: "Requests of a caller at once before the rate counts.")
    static let gatewayConcurrency = SettingKey(
        "gateway.concurrency", .integer(in: 1...100_000), default: gateway.access.limits.concurrency,
        help: "Requests of a caller under way at once.")
    static let gatewayCallerStreams = SettingKey(
        "gateway.callerStreams", .integer(in: 1...100_000), default: gateway.access.limits.streams,
        help: "Event streams of a caller at once.")

    static let gatewayMostCallers = SettingKey(
        "gateway.mostCallers", .integer(in: 1...10_000_000), default: gateway.access.limits.mostCallers,
        help: "Callers that are known at once; more than that have one allowance together.")

    static let gatewayDeadLetters = SettingKey(
        "gateway.deadLetters", .integer(in: 1...100_000), default: gateway.dead.most,
        help: "Dead letters of one request, to /v1/dead or to be replayed.")
    static let gatewayDeadBytes = SettingKey(
        "gateway.deadBytes", .byteSize(in: 1024...(64 << 20)), default: gateway.dead.pageBytes,
        help: "Bytes of one page of dead letters: it ends with the letter that makes it longer.")
    static let gatewayDeadTime = SettingKey(
        "gateway.deadTime", .duration(in: .milliseconds(100) ... .seconds(50)), default: gateway.dead.time,
        help: "How long dead letters are read for one request; what was found by then is answered.")

    static let gatewayOverviewInterval = SettingKey(
        "gateway.overviewInterval", .duration(in: .milliseconds(100) ... .seconds(3600)),
        default: gateway.overview.interval,
        help: "How often the gateway looks at lanes, workers and dead letters at most, however many ask.")
    static let gatewayOverviewPatience = SettingKey(
        "gateway.overviewPatience", .duration(in: .milliseconds(100) ... .seconds(10)),
        default: gateway.overview.patience,
        help: "How long it waits then for Kafka, for each thing that it asks; what is not known is left out.")

    /// All of them, in the order in which they are listed.
    static let serving: [any AnySettingKey] = [
        gatewayListen, gatewayOpen, gatewayRequiresExpiry, gatewayOrigins, gatewayRate, gatewayBurst,
        gatewayConcurrency,
        gatewayCallerStreams, gatewayMostCallers, gatewayConnections, gatewayBodyBytes, gatewayLines, gatewayJobMemory,
        gatewaySendTime, gatewayWait,
        gatewayImageMemory, gatewayImageBytes,
        gatewayFormats, gatewayDeadLetters, gatewayDeadBytes, gatewayDeadTime,
        gatewayOverviewInterval, gatewayOverviewPatience,
    ]
}

extension Configuration {
    /// What a gateway is told.
    func gateway() throws -> GatewayOptions {
        var options = GatewayOptions(topics: topics, kafka: kafka, redis: try redis())
        options.group = settings[Keys.group]
        options.reader = jobReader
        options.budget = budget
        options.access = try access
        options.shelf.time = settings[Keys.gatewayImageMemory]
        options.shelf.bytes = settings[Keys.gatewayImageBytes]
        options.events = events
        options.limits.bodyBytes = settings[Keys.gatewayBodyBytes]
        options.limits.connections = settings[Keys.gatewayConnections]
        options.jobs.linesAtOnce = settings[Keys.gatewayLines]
        options.jobs.memory = settings[Keys.gatewayJobMemory] / .seconds(1)
        options.jobs.sendTime = settings[Keys.gatewaySendTime]
        options.jobs.longestWait = settings[Keys.gatewayWait]
        options.dead.most = settings[Keys.gatewayDeadLetters]
        options.dead.pageBytes = settings[Keys.gatewayDeadBytes]
        options.dead.time = settings[Keys.gatewayDeadTime]
        options.overview.interval = settings[Keys.gatewayOverviewInterval]
        options.overview.patience = settings[Keys.gatewayOverviewPatience]
        options.render.wait = settings[Keys.gatewayWait]
        options.render.formats = settings[Keys.gatewayFormats]
        return options
    }
}

extension Configuration {
    /// Who may do what at the gateway.
    private var access: AccessOptions {
        get throws(ConfigurationError) {
            var options = AccessOptions()
            options.keys = try keys
            options.urlKeys = try urlKeys
            options.isOpen = settings[Keys.gatewayOpen]
            options.requiresExpiry = settings[Keys.gatewayRequiresExpiry]
            options.origins = settings[Keys.gatewayOrigins]
            options.limits.rate = Double(settings[Keys.gatewayRate])
            options.limits.burst = Double(settings[Keys.gatewayBurst])
            options.limits.concurrency = settings[Keys.gatewayConcurrency]
            options.limits.streams = settings[Keys.gatewayCallerStreams]
            options.limits.mostCallers = settings[Keys.gatewayMostCallers]
            return options
        }
    }

    private var keys: [APIKey] {
        get throws(ConfigurationError) {
            let (secrets, scopes) = (settings[Keys.gatewayKeys], settings[Keys.gatewayScopes])
            for name in scopes.keys where secrets[name] == nil {
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
            for (id, secret) in settings[Keys.gatewayURLKeys].sorted(by: { $0.key < $1.key }) {
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
