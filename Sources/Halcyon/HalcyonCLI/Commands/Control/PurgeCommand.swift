import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import ProgramSettings

/// `halcyon purge`: deletes results and publishes a purge event.
enum PurgeCommand: Subcommand {
    private static let source = Parameter<String?>.option(
        "source", .text, as: "SOURCE",
        help: "Purge all results of this source, and cached copies of the source. \(SourceArgument.help).")
    private static let tag = Parameter<String?>.option(
        "tag", .tag, as: "TAG", help: "Purge all results of jobs with this tag.")
    private static let key = Parameter<ResultKey?>.option(
        "key", .resultKey, as: "KEY", help: "Purge the result with this key, as printed by `halcyon key`.")
    private static let tenant = Parameter<String?>.option(
        "tenant", .tenant, as: "NAME",
        help: """
            The tenant whose results to purge: all of them, or those that the other options select. Default: the \
            results of jobs without a tenant.
            """)
    private static let json = Parameter.flag("json", help: "Print the outcome as one JSON object.")

    static let command = Command(
        "purge", summary: "Delete results before they expire, and publish an event.",
        discussion: """
            Select the results by source, tag or key, or all results of a tenant. They are deleted from Redis and from \
            the result store, if results.store is set, without a worker. Jobs in flight do not restore them. A purge \
            by source also removes cached copies of the source, including those on the disks of workers. Otherwise, \
            results are rendered again from cached sources.

            Consumers receive a halcyon.image.purged event, and workers pass it to CDNs (purge.hooks). If nothing \
            matches, the count is 0 and the exit code is 0.
            """, parameters: [source, tag, key, tenant, json],
        examples: [
            .init(
                "halcyon purge --source https://example.org/cat.jpg", "Purge an image that has changed at its origin."),
            .init("halcyon purge --tag article-17 --tenant shop-7", "Purge all images of an article."),
            .init("halcyon purge --tenant shop-7", "Purge all images of a tenant."),
            .init(
                "halcyon purge --key \"$(halcyon key https://example.org/cat.jpg --width 400)\"",
                "Purge one size of an image."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let purge = Purge(try target(arguments, configuration.jobReader), of: arguments[tenant])
        let access = KafkaAccess(configuration)
        // Check that the purge can be announced before anything is deleted.
        try await access.requireNow([access.topics.control, access.topics.events])
        do {
            let purged = try await access.withProducer(limit: KafkaAccess.timeout) { producer in
                try await configuration.withRedis { redis in
                    try await configuration.withResultStore {
                        try await PurgeService(redis, $0, producer, topics: access.topics).run(purge)
                    }
                }
            }
            report(purged, asJSON: arguments[json])
        } catch let error as PurgeNotBroadcast {
            report(error.purged, asJSON: arguments[json])
            throw CommandError("\(error)")
        }
        return .done
    }

    private static func target(_ arguments: ParsedCommand, _ reader: JobDecoder) throws(InputError) -> Purge.Target {
        switch (arguments[source], arguments[tag], arguments[key], arguments[tenant]) {
        case (let source?, nil, nil, _): return .source(try Source(given: source, reader))
        case (nil, let tag?, nil, _): return .tag(tag)
        case (nil, nil, let key?, _): return .key(key)
        case (nil, nil, nil, let tenant?): return .tenant(tenant)
        case (nil, nil, nil, nil):
            throw InputError("nothing to purge; give one of --source, --tag and --key, or --tenant", of: arguments)
        default: throw InputError("--source, --tag and --key cannot be combined; give only one", of: arguments)
        }
    }

    private static func report(_ purged: Purged, asJSON: Bool) {
        if asJSON {
            Console.print(json: purged.json)
        } else {
            Console.print("\(counted(purged.count, "result")) purged")
        }
    }
}

extension ValueKind<String> {
    /// A tag, with the rules of the job field.
    static var tag: Self {
        ValueKind("1 to \(Job.longestTag) bytes without control characters") { Job.isTag($0) ? $0 : nil }
    }
}

extension ValueKind<ResultKey> {
    fileprivate static var resultKey: Self {
        ValueKind("a key such as `halcyon key` prints") { ResultKey($0) }
    }
}

extension Source {
    /// Parses a source from the option `--source`.
    init(given text: String, _ reader: JobDecoder) throws(InputError) {
        var draft = JobBuilder()
        try draft.set(source: text)
        do throws(InvalidJobError) {
            self = try ValidatedJob(draft, fallbackID: "-", by: reader).complaining().job.source
        } catch {
            throw InputError("--\(error.failure.message)")
        }
    }
}
