import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import ProgramSettings

/// The parameters and services that `halcyon pause` and `halcyon resume` share.
private enum Pausing {
    static let lane = Parameter<Lane?>.option("lane", .oneOf, as: "LANE", help: "The lane.")
    static let tenant = Parameter<String?>.option("tenant", .tenant, as: "NAME", help: "The tenant.")

    /// Returns the lane or tenant of the command line.
    static func target(_ arguments: ParsedCommand) throws(InputError) -> PauseTarget {
        switch (arguments[lane], arguments[tenant]) {
        case (let lane?, nil): return .lane(lane)
        case (nil, let tenant?): return .tenant(tenant)
        default: throw InputError("give one of --lane and --tenant", of: arguments)
        }
    }

    /// Runs `body` with the service that changes pauses.
    /// - Throws: ``CommandError`` if a server is unavailable or the change is not possible.
    static func withService<Value: Sendable>(
        _ configuration: Configuration, _ body: (PauseService) async throws -> Value
    ) async throws -> Value {
        let access = KafkaAccess(configuration)
        // Check that the change can be announced before anything is changed.
        try await access.requireNow([access.topics.control])
        do {
            return try await access.withProducer(limit: KafkaAccess.timeout) { producer in
                try await configuration.withRedis { redis in
                    try await body(
                        PauseService(
                            PauseStore(redis, topics: access.topics), ControlPublisher(producer, topics: access.topics))
                    )
                }
            }
        } catch let error as PauseError {
            throw CommandError("\(error)")
        } catch let error as PauseNotBroadcast {
            throw CommandError("\(error)")
        }
    }
}

extension PauseTarget {
    /// The lane or tenant, for messages.
    fileprivate var text: String {
        switch self {
        case .lane(let lane): "lane \(lane.rawValue)"
        case .tenant(let tenant): "tenant \(tenant)"
        }
    }
}

/// `halcyon pause`: pauses a lane or a tenant.
enum PauseCommand: Subcommand {
    private static let list = Parameter.flag("list", help: "List the paused lanes and tenants, and pause nothing.")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each lane or tenant.")

    static let command = Command(
        "pause", summary: "Pause a lane or a tenant.",
        discussion: """
            Workers start no more jobs of the lane or tenant, and finish those in flight. The others wait in their \
            topics until `halcyon resume`, also if workers are restarted. Jobs whose deadline passes meanwhile end as \
            expired after that. Other lanes and tenants continue; see docs/control.md for the limits.
            """, parameters: [Pausing.lane, Pausing.tenant, list, json],
        examples: [
            .init("halcyon pause --lane low", "Pause the background work."),
            .init("halcyon pause --tenant shop-7", "Pause a tenant."),
            .init("halcyon pause --list", "List what is paused, and since when."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        if arguments[list] {
            guard arguments[Pausing.lane] == nil, arguments[Pausing.tenant] == nil else {
                throw InputError("--list cannot be combined with --lane and --tenant", of: arguments)
            }
            let topics = configuration.topics
            let pauses = try await configuration.withRedis { try await PauseStore($0, topics: topics).pauses() }
            for paused in pauses.paused { show(PausedTarget(target: paused.target, since: paused.since), arguments) }
            return .done
        }
        let target = try Pausing.target(arguments)
        show(try await Pausing.withService(configuration) { try await $0.pause(target).paused }, arguments)
        return .done
    }

    private static func show(_ paused: PausedTarget, _ arguments: ParsedCommand) {
        if arguments[json] { return Console.printObject { paused.writeMembers(to: &$0) } }
        let since = Timestamp(milliseconds: paused.since / 1000).rfc3339
        Console.print("\(paused.target.text): paused since \(since)")
    }
}

/// `halcyon resume`: resumes a lane or a tenant.
enum ResumeCommand: Subcommand {
    private static let json = Parameter.flag("json", help: "Print the outcome as one JSON object.")

    static let command = Command(
        "resume", summary: "Resume a lane or a tenant that was paused.",
        discussion: "Exits with code 3 if it was not paused.", parameters: [Pausing.lane, Pausing.tenant, json],
        examples: [
            .init("halcyon resume --lane low", "Resume the background work."),
            .init("halcyon resume --tenant shop-7", "Resume a tenant."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let target = try Pausing.target(arguments)
        guard try await Pausing.withService(Configuration(arguments), { try await $0.resume(target) }) else {
            Console.complain("\(target.text) is not paused")
            return .notFound
        }
        if arguments[json] {
            Console.printObject { writer in
                target.writeMember(to: &writer)
                writer.member("resumed", true)
            }
        } else {
            Console.print("\(target.text): resumed")
        }
        return .done
    }
}
