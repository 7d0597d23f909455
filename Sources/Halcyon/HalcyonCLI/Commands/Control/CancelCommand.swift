import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import ProgramSettings

/// `halcyon cancel`: cancels jobs.
enum CancelCommand: Subcommand {
    private static let jobs = Parameter<[String]>.arguments(
        "JOB", .jobID, atLeast: 0, help: "The id of the job, as in its events.")
    private static let source = Parameter<String?>.option(
        "source", .text, as: "SOURCE", help: "Cancel the jobs with this source. \(SourceArgument.help).")
    private static let tag = Parameter<String?>.option(
        "tag", .tag, as: "TAG", help: "Cancel the jobs with this tag.")
    private static let tenant = Parameter<String?>.option(
        "tenant", .tenant, as: "NAME",
        help: """
            The tenant whose jobs to cancel: all of them, or those that the other options select. Default: jobs \
            without a tenant.
            """)
    private static let json = Parameter.flag("json", help: "Print one JSON object for each request.")

    static let command = Command(
        "cancel", summary: "Cancel queued and running jobs.",
        discussion: """
            Select the jobs by id, source or tag, or all jobs of a tenant. A queued or running job ends as cancelled \
            and produces no image. Work that other jobs share continues. Jobs that have already ended, and those that \
            are submitted later, are not affected. `halcyon batch cancel` cancels the jobs of a batch.

            The command returns when Kafka has acknowledged the request. It does not know which jobs exist, so follow \
            their events for the outcome.
            """, parameters: [jobs, source, tag, tenant, json],
        examples: [
            .init("halcyon cancel article-17-hero", "Cancel one job."),
            .init("halcyon cancel --tag article-17 --tenant shop-7", "Cancel all jobs of an article."),
            .init("halcyon cancel --tenant shop-7", "Cancel all jobs of a tenant."),
            .init(
                "halcyon cancel article-17-hero && halcyon events --job article-17-hero --since 1m --limit 1",
                "Cancel a job and print how it ended."),
        ])

    static let connection = Connection.kafka

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let targets = try targets(arguments, configuration.jobReader)
        let access = KafkaAccess(configuration)
        try await access.requireNow([access.topics.control])
        try await access.withProducer(limit: KafkaAccess.timeout) { producer in
            let control = ControlPublisher(producer, topics: access.topics)
            for target in targets {
                try await control.publish(.cancel(target))
                report(target, asJSON: arguments[json])
            }
        }
        return .done
    }

    private static func targets(
        _ arguments: ParsedCommand, _ reader: JobDecoder
    ) throws(InputError) -> [CancelTarget] {
        let ids = arguments[jobs]
        switch (arguments[source], arguments[tag], arguments[tenant]) {
        case (nil, nil, nil):
            guard !ids.isEmpty else {
                throw InputError("nothing to cancel; give the id of a job, --source, --tag or --tenant", of: arguments)
            }
            return ids.map { .job($0) }
        case _ where !ids.isEmpty:
            throw InputError("ids cannot be combined with --source, --tag and --tenant", of: arguments)
        case (let source?, nil, let tenant): return [.source(try Source(given: source, reader), of: tenant)]
        case (nil, let tag?, let tenant): return [.tag(tag, of: tenant)]
        case (nil, nil, let tenant?): return [.tenant(tenant)]
        default: throw InputError("--source and --tag cannot be combined; give only one", of: arguments)
        }
    }

    private static func report(_ target: CancelTarget, asJSON: Bool) {
        if asJSON {
            Console.printObject { writer in
                switch target {
                case .job(let id, _): writer.member("job", id)
                case .tag, .source, .tenant: writer.member("jobs", target)
                }
                writer.member("outcome", "told")
            }
            return
        }
        func jobs(_ tenant: String?) -> String { tenant.map { "jobs of tenant \($0)" } ?? "jobs without a tenant" }
        let text =
            switch target {
            case .job(let id, _): id
            case .tag(let tag, let tenant): "\(jobs(tenant)) with tag \(tag)"
            case .source(let source, let tenant): "\(jobs(tenant)) with source \(source.shownText)"
            case .tenant(let tenant): jobs(tenant)
            }
        Console.print("\(text): cancellation requested")
    }
}

extension ValueKind<String> {
    /// The id of a job.
    fileprivate static var jobID: Self {
        ValueKind("1 to \(Job.longestID) characters, none of them U+0000") { Job.isID($0) ? $0 : nil }
    }
}
