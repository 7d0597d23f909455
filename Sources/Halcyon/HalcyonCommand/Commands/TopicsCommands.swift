import HalcyonCluster
import JSON
import Kafka
import ProgramSettings

/// `halcyon topics`.
enum TopicsCommands {
    static let group = CommandGroup(
        name: "topics", summary: "Make the cluster's topics, or list them.",
        members: [TopicsCreateCommand.self, TopicsListCommand.self])
}

/// `halcyon topics create`.
enum TopicsCreateCommand: Subcommand {
    private static let partitions = Parameter<Int>.option(
        "partitions", .integer(in: 1...10_000), as: "N", default: TopicPlan.standardPartitions,
        help:
            "Partitions of each lane, each topic of retries and webhooks, and of the events; \(TopicPlan.standardPartitions) unless given."
    )
    private static let replication = Parameter<Int?>.option(
        "replication", .integer(in: 1...100), as: "N",
        help: "Brokers that hold each partition; as many as there are, at most 3, unless given.")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each topic.")

    static let command = Command(
        "create", summary: "Make the topics that are not there, with sound settings; what is there stays as it is.",
        discussion: """
            Lanes: 12 partitions divide evenly among 1, 2, 3, 4, 6 or 12 workers, and jobs stay for 7 days; so do those that wait \
            in topics to be tried again (retry.delays, webhooks.delays). Events \
            stay for a day, like results do; dead letters for 30 days, on one partition, in the order in which they \
            came. What workers are told (control) has one partition and stays for a week, or a day longer than folders of workers \
            keep sources (sources.folderRetention), which is 31 days unless set. With three replicas two must have a message before it counts as written.
            """, parameters: [partitions, replication, json],
        examples: [
            .init("halcyon topics create --brokers kafka:9092", "Once for each cluster; again does no harm."),
            .init("halcyon topics create --partitions 48", "For up to 48 workers."),
        ])

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
            Console.print("\(topic.name): there already\(facts)\(hint)")
        case .failed(let error): Console.print("\(Console.red("\(topic.name): not made")), \(error)")
        }
    }
}

/// `halcyon topics list`.
enum TopicsListCommand: Subcommand {
    private static let json = Parameter.flag("json", help: "Print one JSON object for each topic.")

    static let command = Command(
        "list", summary: "List the cluster's topics.", parameters: [json],
        examples: [.init("halcyon topics list", "Which topics are there, and how large they are.")])

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
                Console.print("\(name): \(Console.red("missing")); `halcyon topics create` makes it")
            }
        }
        return access.topics.all.allSatisfy { metadata.topics[$0] != nil } ? .done : .notFound
    }
}
