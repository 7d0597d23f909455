import HalcyonCluster
import JSON
import Kafka
import ProgramSettings

/// `halcyon topics`: the commands for topics.
enum TopicsCommands {
    static let group = CommandGroup(
        name: "topics", summary: "Create or list the topics of the cluster.",
        members: [TopicsCreateCommand.self, TopicsListCommand.self])
}

/// `halcyon topics create`: creates the missing topics.
enum TopicsCreateCommand: Subcommand {
    private static let partitions = Parameter<Int>.option(
        "partitions", .integer(in: 1...10_000), as: "N", default: TopicPlan.standardPartitions,
        help:
            "Partitions of each lane, each retry and webhook topic, and the event topic. "
            + "Default: \(TopicPlan.standardPartitions)."
    )
    private static let replication = Parameter<Int?>.option(
        "replication", .integer(in: 1...100), as: "N",
        help: "Replication factor. Default: the number of brokers, at most 3.")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each topic.")

    static let command = Command(
        "create", summary: "Create the missing topics with recommended settings. Existing topics are not changed.",
        discussion: """
            Lanes have 12 partitions, which 1, 2, 3, 4, 6 or 12 workers share evenly, and a retention of 7 days. So \
            have the retry topics (retry.delays, webhooks.delays). Events are retained for a day, like results. Dead \
            letters have one partition, so they stay in order, and a retention of 30 days.

            The control topic has one partition and a retention of a week, or one day longer than workers keep sources \
            on disk (sources.diskCacheRetention), 31 days by default. With three replicas, two must be in sync \
            to acknowledge a message.
            """, parameters: [partitions, replication, json],
        examples: [
            .init(
                "halcyon topics create --brokers kafka:9092",
                "Create the topics once per cluster. Running it again is harmless."),
            .init("halcyon topics create --partitions 48", "Allow up to 48 workers."),
        ])

    static let connection = Connection.kafka

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let access = KafkaAccess(configuration)
        let before = try await access.metadata(until: .now + .seconds(10))
        let plan = TopicPlan(
            topics: access.topics, partitions: arguments[partitions],
            replication: arguments[replication] ?? min(3, before.brokers.count),
            folderRetention: configuration.options.worker.sourceTier.folderRetention)
        let missing = plan.topics.filter { before.topics[$0.name] == nil }
        let creations = try await access.withAdmin { try await $0.create(missing) }
        var code = ExitCode.done
        for topic in plan.topics {
            let existing = before.topics[topic.name]?.count
            let creation = existing == nil ? creations[topic.name] ?? .existed : .existed
            report(topic, creation, existing: existing, asJSON: arguments[json])
            if case .failed = creation { code = .failed }
        }
        return code
    }

    private static func report(_ topic: NewTopic, _ creation: TopicCreation, existing: Int?, asJSON: Bool) {
        let partitions = topic.partitions ?? 0
        if asJSON {
            Console.printObject { writer in
                writer.member("topic", topic.name)
                switch creation {
                case .created: writer.member("outcome", "created")
                case .existed: writer.member("outcome", "existed")
                case .failed(let error):
                    writer.member("outcome", "failed")
                    writer.member("message", "\(error)")
                }
                writer.member("partitions", existing ?? partitions)
            }
            return
        }
        switch creation {
        case .created:
            let settings = topic.configuration.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: " ")
            Console.print(
                "\(topic.name): created, \(counted(partitions, "partition")), "
                    + "\(counted(topic.replication ?? 1, "replica")), \(settings)")
        case .existed:
            let facts = existing.map { ", \(counted($0, "partition"))" } ?? ""
            let isSmall = existing.map { $0 < partitions } ?? false
            let hint = isSmall ? "; `kafka-topics.sh --alter --partitions \(partitions)` adds some" : ""
            Console.print("\(topic.name): already exists\(facts)\(hint)")
        case .failed(let error): Console.print("\(Console.red("\(topic.name): not created")), \(error)")
        }
    }
}

/// `halcyon topics list`: lists the topics.
enum TopicsListCommand: Subcommand {
    private static let json = Parameter.flag("json", help: "Print one JSON object for each topic.")

    static let command = Command(
        "list", summary: "List the topics of the cluster.", parameters: [json],
        examples: [.init("halcyon topics list", "Show each topic with its partitions and replicas.")])

    static let connection = Connection.kafka

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let access = KafkaAccess(try Configuration(arguments))
        let metadata = try await access.metadata(until: .now + .seconds(10))
        for name in access.topics.all {
            let partitions = metadata.topics[name]
            let replicas = partitions?.first?.replicas.count
            if arguments[json] {
                Console.printObject { writer in
                    writer.member("topic", name)
                    writer.member("partitions", partitions?.count ?? 0)
                    writer.member("replication", replicas)
                }
            } else if let partitions {
                Console.print(
                    "\(name): \(counted(partitions.count, "partition")), \(counted(replicas ?? 0, "replica"))")
            } else {
                Console.print("\(name): \(Console.red("missing")); run `halcyon topics create`")
            }
        }
        return access.topics.all.allSatisfy { metadata.topics[$0] != nil } ? .done : .notFound
    }
}
