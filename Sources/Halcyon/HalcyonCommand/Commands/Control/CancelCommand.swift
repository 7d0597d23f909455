import Formats
import HalcyonCluster
import HalcyonModel
import JSON
import Kafka
import ProgramSettings

/// `halcyon cancel`: says that nobody wants some jobs any more.
enum CancelCommand: Subcommand {
    private static let jobs = Parameter<[String]>.arguments(
        "JOB", .jobID, atLeast: 1, help: "The job's id, as its events have it.")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each job.")

    static let command = Command(
        "cancel", summary: "Cancel jobs that have not ended.",
        discussion: """
            A job that waits or is being done ends as cancelled, and no image comes of it; work that others wait for goes on. A job \
            that has ended stays as it is. What counts is the event that follows: this ends when Kafka has the word, and does not \
            know whether there is such a job. The id may be used again for a job that is submitted afterwards.
            """, parameters: [jobs, json],
        examples: [
            .init("halcyon cancel article-17-hero", "Nobody wants it any more."),
            .init(
                "halcyon cancel article-17-hero && halcyon events --job article-17-hero --since 1m --limit 1",
                "Cancel it and see how it ended."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let access = KafkaAccess(try Configuration(arguments))
        try await access.requireNow([access.topics.control])
        try await access.withProducer(limit: KafkaAccess.patience) { producer in
            let control = ControlPublisher(producer, topics: access.topics)
            for id in arguments[jobs] {
                try await control.publish(.cancel(id))
                if arguments[json] {
                    Console.printObject { writer in
                        writer.member("job", id)
                        writer.member("outcome", "told")
                    }
                } else {
                    Console.print("\(id): workers are told")
                }
            }
        }
        return .done
    }
}

extension ValueKind<String> {
    /// A job's id.
    fileprivate static var jobID: Self {
        ValueKind("1 to \(Job.longestID) characters, none of them U+0000") { Job.isID($0) ? $0 : nil }
    }
}
