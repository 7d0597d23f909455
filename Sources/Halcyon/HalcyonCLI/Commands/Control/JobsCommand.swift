import Formats
import HalcyonCluster
import HalcyonModel
import JSON
import ProgramSettings

/// `halcyon jobs`: lists the jobs in flight.
enum JobsCommand: Subcommand {
    private static let lane = Parameter<Lane?>.option("lane", .oneOf, as: "LANE", help: "List the jobs of this lane.")
    private static let tenant = Parameter<String?>.option(
        "tenant", .tenant, as: "NAME", help: "List the jobs of this tenant.")
    private static let limit = Parameter<Int>.option(
        "limit", .integer(in: 1...JobListRequest.mostJobs), as: "N", default: JobListRequest.standardLimit,
        help: "The maximum number of jobs. Default: \(JobListRequest.standardLimit).")
    private static let timeout = Parameter<Duration>.option(
        "timeout", .duration(in: .milliseconds(100) ... .seconds(60)), as: "DURATION", default: .seconds(3),
        help: "The time to wait for the replies of workers. Default: 3s.")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each job.")

    static let command = Command(
        "jobs", summary: "List the jobs in flight on all workers, the oldest first.",
        discussion: """
            A job is in flight from its admission until its end. It waits for a permit or for another job with the \
            same result (waiting), its source is being loaded or rendered (loading, rendering), its results are being \
            uploaded or stored (delivering), or it waits for its next attempt (retrying). Jobs that wait in their \
            topics are not listed.

            The command asks the workers over the control topic. Workers that do not reply in time are named on \
            standard error; if there are any, the exit code is 1.
            """, parameters: [lane, tenant, limit, timeout, json],
        examples: [
            .init("halcyon jobs", "List the oldest 100 jobs in flight."),
            .init("halcyon jobs --tenant shop-7 --json | jq -r .id", "Print the ids of the jobs of a tenant."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let access = KafkaAccess(configuration)
        try await access.requireNow([access.topics.control])
        let list = try await access.withProducer(limit: KafkaAccess.timeout) { producer in
            try await configuration.withRedis { redis in
                try await JobLister(redis, ControlPublisher(producer, topics: access.topics)).list(
                    limit: arguments[limit], tenant: arguments[tenant], lane: arguments[lane],
                    within: arguments[timeout])
            }
        }
        show(list, asJSON: arguments[json])
        guard list.missing.isEmpty else {
            Console.complain(
                "\(counted(list.missing.count, "worker")) did not reply: \(list.missing.joined(separator: ", "))")
            return .failed
        }
        return .done
    }

    private static func show(_ list: JobListing, asJSON: Bool) {
        for job in list.jobs {
            let isRead = asJSON ? Console.print(json: job.json) : Console.print(job.text)
            guard isRead else { return }
        }
        if !asJSON {
            Console.print(
                "\(list.jobs.count) of \(counted(list.total, "job")) in flight on "
                    + counted(list.workers.count, "worker"))
        }
    }
}

extension JobDescription {
    fileprivate var json: [UInt8] {
        var writer = JSONWriter(capacity: 256)
        writer.value(self)
        return writer.bytes
    }

    /// A line such as `article-17  normal  rendering  1.2 s  attempt 1  shop-7  https://example.org/cat.jpg  w-1`.
    fileprivate var text: String {
        let age = "\((age * 10).rounded() / 10) s"
        return [
            id, lane.rawValue, stage.rawValue, age, "attempt \(attempt)", tenant, source, worker,
        ].compactMap(\.self).joined(separator: "  ")
    }
}
