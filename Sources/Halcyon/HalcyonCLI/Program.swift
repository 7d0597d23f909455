import Concurrency
import Glibc
import HalcyonCluster
import Kafka
import ProgramSettings
import Subprocess
import Telemetry
import Vips

/// A command: its declaration and its implementation.
protocol Subcommand: Sendable {
    /// The name, help and parameters of the command.
    static var command: Command { get }
    /// True if the command handles SIGINT and SIGTERM itself. These signals cancel the task of any other command.
    static var handlesSignals: Bool { get }
    /// The servers that the command connects to. Its help has their options.
    static var connection: Connection { get }
    /// Runs the command with its parsed arguments.
    static func run(_ arguments: ParsedCommand) async throws -> ExitCode
}

extension Subcommand {
    static var handlesSignals: Bool { false }
    static var connection: Connection { .cluster }

    /// The command with the options of its connection.
    static var connectedCommand: Command { connection.options.map { command.adding($0) } ?? command }
}

/// The servers that a command connects to.
enum Connection {
    case none, kafka, redis
    /// Kafka and Redis.
    case cluster

    /// The options that select the servers; nil if there are none.
    var options: OptionGroup? {
        switch self {
        case .none: nil
        case .kafka: OptionGroup("Connection", [CommonArguments.brokers, CommonArguments.prefix])
        case .redis: OptionGroup("Connection", [CommonArguments.redis])
        case .cluster:
            OptionGroup("Connection", [CommonArguments.brokers, CommonArguments.redis, CommonArguments.prefix])
        }
    }
}

/// Commands that share a prefix, such as `halcyon topics create` and `halcyon topics list`.
struct CommandGroup: Sendable {
    let name: String
    let summary: String
    let members: [any Subcommand.Type]

    var command: Command { Command(name, summary: summary, commands: members.map { $0.connectedCommand }) }
}

/// The command tree of the program.
enum Program {
    private static let subcommands: [any Subcommand.Type] = [
        DevCommand.self, WorkerCommand.self, GatewayCommand.self, SubmitCommand.self, GetCommand.self, KeyCommand.self,
        EventsCommand.self, TopCommand.self,
        RenderCommand.self, InfoCommand.self, JobsCommand.self, CancelCommand.self, PauseCommand.self,
        ResumeCommand.self,
        PurgeCommand.self, TrimCommand.self, RerenderCommand.self,
    ]
    private static let groups = [
        BatchCommands.group, PresetCommands.group, TopicsCommands.group, DeadLetterCommands.group,
    ]
    private static let helpers: [any Subcommand.Type] = [
        DoctorCommand.self, HealthCommand.self, BenchCommand.self, PlanCommand.self, ConfigCommand.self,
        CompletionsCommand.self, ManualCommand.self,
    ]

    static let command = Command(
        "halcyon", summary: "Run a distributed image worker cluster with jobs on Kafka and results in Redis.",
        discussion: """
            To try it, run `halcyon dev`: it starts a complete cluster on this machine without any setup. In \
            production, run `halcyon worker` on each node and submit jobs with `halcyon submit`. If jobs make no \
            progress, `halcyon doctor` reports what is wrong.

            Settings come from flags, the environment (HALCYON_KAFKA_BROKERS), a YAML file (--config) and defaults, in \
            this order of precedence. `halcyon config` prints all of them.

            Exit codes: \(ExitCode.meanings.map { "\($0.codes) \($0.meaning)" }.joined(separator: ", ")).
            """, version: Version.number, parameters: CommonArguments.all,
        commands: subcommands.map { $0.connectedCommand } + groups.map(\.command)
            + helpers.map { $0.connectedCommand })

    /// Returns the command at a path such as `["halcyon", "topics", "create"]`.
    static func subcommand(at path: [String]) -> any Subcommand.Type {
        let group = groups.first { $0.name == path.dropFirst().first }
        guard let found = (group?.members ?? subcommands + helpers).first(where: { $0.command.name == path.last })
        else {
            preconditionFailure("the parser returned an unregistered command: \(path)")
        }
        return found
    }
}

/// Options that override settings, for all commands or for those that connect to the servers.
enum CommonArguments {
    static let config = Parameter.option(
        "config", .file, as: "FILE", help: "A YAML file with settings. Default: the file named by HALCYON_CONFIG.")
    static let set = Parameter.repeated(
        "set", .text, as: "NAME=VALUE", help: "Override a setting by the name that `halcyon config` prints.")
    static let brokers = Parameter<String?>.option(
        "brokers", .text, as: "HOST:PORT,…", help: "The Kafka bootstrap brokers (kafka.brokers).")
    static let redis = Parameter<String?>.option("redis", .text, as: "URL", help: "The URL of Redis (redis.url).")
    static let prefix = Parameter<String?>.option(
        "prefix", .text, as: "TEXT", help: "The prefix of all topic names (kafka.prefix).")
    static let logLevel = Parameter<String?>.option(
        "log-level", .oneOf(LogLevel.allCases.map(\.rawValue)), as: "LEVEL", help: "The minimum log level (log.level).")

    static let all: [any AnyParameter] = [config, set, logLevel]

    /// The settings that the options override.
    /// - Throws: ``ConfigurationError`` for a `--set` without `=`.
    static func flags(_ arguments: ParsedCommand) throws -> [SettingFlag] {
        let named: [(Parameter<String?>, String, String)] = [
            (brokers, "kafka.brokers", "--brokers"), (redis, "redis.url", "--redis"),
            (prefix, "kafka.prefix", "--prefix"), (logLevel, "log.level", "--log-level"),
        ]
        let free = try arguments[set].map { text in
            guard let equals = text.firstIndex(of: "=") else {
                throw ConfigurationError("--set \(text): expected NAME=VALUE")
            }
            return SettingFlag(
                name: String(text[..<equals]), flag: "--set", value: String(text[equals...].dropFirst()))
        }
        return free
            + named.compactMap { parameter, name, flag in
                arguments[parameter].map { SettingFlag(name: name, flag: flag, value: $0) }
            }
    }
}

extension Configuration {
    /// Reads the configuration from a command's options, the environment and the configuration file.
    /// - Throws: the errors of ``init(flags:file:)``.
    convenience init(_ arguments: ParsedCommand) throws {
        try self.init(flags: CommonArguments.flags(arguments), file: arguments[CommonArguments.config])
    }
}

extension Metrics {
    /// Creates the metrics of a long-running program, with those of the process and of the build.
    static func ofProgram() -> Metrics {
        let metrics = Metrics()
        metrics.readProcess()
        metrics.gauge(
            "halcyon_build_info", help: "Always 1. The labels carry the versions of Halcyon and its libraries.",
            labels: ["version": Version.number, "libvips": VipsLibrary.version, "librdkafka": KafkaLibrary.version]
        ).set(1)
        return metrics
    }

    /// Adds the metrics of libvips in this process. They do not include render processes.
    func readVips() {
        observable(.gauge, "halcyon_vips_tracked_bytes", help: "Bytes of pixel memory that libvips has allocated.") {
            Double(VipsLibrary.liveBytes)
        }
        observable(
            .gauge, "halcyon_vips_tracked_highwater_bytes",
            help: "Peak of halcyon_vips_tracked_bytes since the process started."
        ) { Double(VipsLibrary.highestBytes) }
        observable(.gauge, "halcyon_vips_tracked_allocations", help: "Pixel buffers that libvips has allocated.") {
            Double(VipsLibrary.liveBuffers)
        }
        observable(.gauge, "halcyon_vips_open_files", help: "Files that libvips has open.") {
            Double(VipsLibrary.openFiles)
        }
        observable(
            .gauge, "halcyon_vips_cached_operations",
            help: "Operations in the operation cache of libvips. The cache is disabled, so this stays at 0."
        ) { Double(VipsLibrary.cachedOperations) }
    }
}

/// SIGINT and SIGTERM. The first signal requests a graceful stop, the second ends the process immediately.
enum StopRequest {
    static let signals = [SIGINT, SIGTERM]

    /// Calls `act` when a stop is requested. Call this method once per process.
    static func listen(_ act: @escaping @Sendable () -> Void) {
        let isAsked = Lock(false)
        Signals.listen(to: signals) { number in
            let isSecond = isAsked.withLock { isAsked in
                defer { isAsked = true }
                return isAsked
            }
            if isSecond { _exit(128 + number) }
            act()
        }
    }
}
