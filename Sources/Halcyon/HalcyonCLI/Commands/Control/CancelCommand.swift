import Formats
import HalcyonCluster
import HalcyonModel
import JSON
import Kafka
import ProgramSettings

/// `halcyon cancel`: cancels jobs.
enum CancelCommand: Subcommand {
    private static let jobs = Parameter<[String]>.arguments(
        "JOB", .jobID, atLeast: 1, help: "The id of the job, as in its events.")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each job.")

    static let command = Command(
        "cancel", summary: "Cancel queued and running jobs.",
        discussion: """
            A queued or running job ends as cancelled and produces no image. Work that other jobs share continues. A \
            job that has already ended is not changed.

            The command returns when Kafka has acknowledged the request. It does not know whether the job exists, so \
            follow its events for the outcome. The id can be used again for a job that is submitted later.
            """, parameters: [jobs, json],
        examples: [
            .init("halcyon cancel article-17-hero", "Cancel one job."),
            .init(
                "halcyon cancel article-17-hero && halcyon events --job article-17-hero --since 1m --limit 1",
                "Cancel a job and print how it ended."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let access = KafkaAccess(try Configuration(arguments))
        try await access.requireNow([access.topics.control])
        try await access.withProducer(limit: KafkaAccess.timeout) { producer in
            let control = ControlPublisher(producer, topics: access.topics)
            for id in arguments[jobs] {
                try await control.publish(.cancel(id))
                if arguments[json] {
                    Console.printObject { writer in
                        writer.member("job", id)
                        writer.member("outcome", "told")
                    }
                } else {
                    Console.print("\(id): cancellation requested")
                }
            }
        }
        return .done
    }
}

extension ValueKind<String> {
    /// The id of a job.
    fileprivate static var jobID: Self {
        ValueKind("1 to \(Job.longestID) characters, none of them U+0000") { Job.isID($0) ? $0 : nil }
    }
}
