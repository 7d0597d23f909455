import Glibc
import HalcyonCluster
import Kafka
import Processes
import ProgramSettings
import Telemetry
import Threads
import Vips

/// What every command is: its declaration, and what it does.
protocol Subcommand: Sendable {
    /// Name, help and parameters.
    static var command: Command { get }
    /// Whether it listens to SIGINT and SIGTERM itself. The task of any other command is cancelled by them.
    static var handlesSignals: Bool { get }
    /// Does it.
    static func run(_ arguments: ParsedCommand) async throws -> ExitCode
}

extension Subcommand {
    static var handlesSignals: Bool { false }
}

/// Commands under one name: `halcyon topics create`.
struct CommandGroup: Sendable {
    let name: String
    let summary: String
    let members: [any Subcommand.Type]

    var command: Command { Command(name, summary: summary, commands: members.map { $0.command }) }
}

/// The tree of commands.
enum Program {
    private static let subcommands: [any Subcommand.Type] = [
        DevCommand.self, WorkerCommand.self, GatewayCommand.self, SubmitCommand.self, GetCommand.self, KeyCommand.self,
        EventsCommand.self,
        RenderCommand.self, CancelCommand.self, PurgeCommand.self, TrimCommand.self,
    ]
    private static let groups = [TopicsCommands.group, DeadCommands.group]
    private static let helpers: [any Subcommand.Type] = [
        DoctorCommand.self, HealthCommand.self, BenchCommand.self, PlanCommand.self, ConfigCommand.self,
        CompletionsCommand.self,
    ]

    static let command = Command(
        "halcyon", summary: "A distributed image worker cluster: fetch-and-size jobs on Kafka, results in Redis.",
        discussion: """
            `halcyon dev` runs all of it on this machine with nothing to set up. `halcyon worker` is what runs in a \
            cluster; `halcyon submit` gives it work, and `halcyon doctor` says what is wrong when it gets none done.

            Settings come from flags, the environment (HALCYON_KAFKA_BROKERS), a YAML file (--config) and defaults, in \
            this order; `halcyon config` shows all of them.

            Exit codes: 0 done, 1 failed, 2 a mistake in the command line, the configuration or the input, 3 not \
            found, 70 a worker that got stuck, 130 or 143 interrupted by SIGINT or SIGTERM.
            """, version: Version.number, parameters: CommonArguments.all,
        commands: subcommands.map { $0.command } + groups.map(\.command) + helpers.map { $0.command })

    /// The command that a path such as `["halcyon", "topics", "create"]` leads to.
    static func subcommand(at path: [String]) -> any Subcommand.Type {
        let group = groups.first { $0.name == path.dropFirst().first }
        guard let found = (group?.members ?? subcommands + helpers).first(where: { $0.command.name == path.last })
        else {
            preconditionFailure("the parser knows a command that is not there: \(path)")
        }
        return found
    }
}

/// Options that every command takes.
enum CommonArguments {
    static let config = Parameter.option(
        "config", .file, as: "FILE", help: "Settings in YAML; HALCYON_CONFIG names one too.")
    static let set = Parameter.repeated(
        "set", .text, as: "NAME=VALUE", help: "Any setting, as `halcyon config` names it.")
    static let brokers = Parameter<String?>.option(
        "brokers", .text, as: "HOST:PORT,…", help: "Kafka's brokers (kafka.brokers).")
    static let redis = Parameter<String?>.option("redis", .text, as: "URL", help: "Redis (redis.url).")
    static let prefix = Parameter<String?>.option(
        "prefix", .text, as: "TEXT", help: "What the names of all topics begin with (kafka.prefix).")
    static let logLevel = Parameter<String?>.option(
        "log-level", .oneOf(LogLevel.allCases.map(\.rawValue)), as: "LEVEL", help: "What is logged (log.level).")

    static let all: [any AnyParameter] = [config, set, brokers, redis, prefix, logLevel]

    /// The settings that the options stand for.
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
    /// From a command's options, the environment and the file.
    /// - Throws: as ``init(flags:file:)``.
    init(_ arguments: ParsedCommand) throws {
        try self.init(flags: CommonArguments.flags(arguments), file: arguments[CommonArguments.config])
    }
}

extension Metrics {
    /// Those of a program that serves: of its process and its build, and what others add.
    static func ofProgram() -> Metrics {
        let metrics = Metrics()
        metrics.readProcess()
        metrics.gauge(
            "halcyon_build_info", help: "1; the labels are the versions of Halcyon and of the libraries it runs with.",
            labels: ["version": Version.number, "libvips": VipsLibrary.version, "librdkafka": KafkaLibrary.version]
        ).set(1)
        return metrics
    }

    /// What libvips holds. Children that render are processes of their own, and not in it.
    func readVips() {
        reading(.gauge, "halcyon_vips_tracked_bytes", help: "Bytes of pixels that libvips holds now.") {
            Double(VipsLibrary.liveBytes)
        }
        reading(
            .gauge, "halcyon_vips_tracked_highwater_bytes",
            help: "The most bytes of pixels that libvips ever held at once."
        ) { Double(VipsLibrary.highestBytes) }
        reading(.gauge, "halcyon_vips_tracked_allocations", help: "Buffers of pixels that libvips holds now.") {
            Double(VipsLibrary.liveBuffers)
        }
        reading(.gauge, "halcyon_vips_open_files", help: "Files that libvips has open.") {
            Double(VipsLibrary.openFiles)
        }
        reading(
            .gauge, "halcyon_vips_cached_operations",
            help: "Operations in the cache of libvips, which is off: jobs do not repeat."
        ) { Double(VipsLibrary.cachedOperations) }
    }
}

/// SIGINT and SIGTERM: the first asks to stop, one more ends the process at once.
enum StopRequest {
    static let signals = [SIGINT, SIGTERM]

    /// Has `act` called when the process is asked to stop. To be called once in the life of a process.
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
