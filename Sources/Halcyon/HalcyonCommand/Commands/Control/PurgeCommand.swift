import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonWire
import JSON
import Kafka
import ProgramSettings

/// `halcyon purge`: forgets results, and says so to everybody.
enum PurgeCommand: Subcommand {
    private static let source = Parameter<String?>.option(
        "source", .text, as: "SOURCE",
        help: "All results of this source, and the source where it is kept. \(SourceArgument.help).")
    private static let tag = Parameter<String?>.option(
        "tag", .tag, as: "TAG", help: "All results of jobs that had this tag.")
    private static let key = Parameter<ResultKey?>.option(
        "key", .resultKey, as: "KEY", help: "The result of this key, as `halcyon key` prints it.")
    private static let tenant = Parameter<String?>.option(
        "tenant", .tenant, as: "NAME", help: "Whose results; without it those of jobs that name no tenant.")
    private static let json = Parameter.flag("json", help: "Print what was purged as one JSON object.")

    static let command = Command(
        "purge", summary: "Forget results before their time, and announce it.",
        discussion: """
            Say what: a source, a tag or a key. The results go from Redis at once, needing no worker. Work for them that is under way \
            does not bring them back. With a source goes what is kept of the source itself, also in the folders of workers; after a \
            purge by tag or key, results are made anew from what is kept of their sources. An event halcyon.image.purged tells \
            consumers. Nothing to purge is no error: the count is 0.
            """, parameters: [source, tag, key, tenant, json],
        examples: [
            .init("halcyon purge --source https://example.org/cat.jpg", "The image has changed: fetch it again."),
            .init("halcyon purge --tag article-17 --tenant shop-7", "All images of an article."),
            .init("halcyon purge --key \"$(halcyon key https://example.org/cat.jpg --width 400)\"", "One size alone."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let purge = Purge(try target(arguments, configuration.jobReader), of: arguments[tenant])
        let access = KafkaAccess(configuration)
        // Who could not be told of it is asked before anything goes.
        try await access.requireNow([access.topics.control, access.topics.events])
        do {
            let purged = try await access.withProducer(limit: KafkaAccess.patience) { producer in
                try await configuration.withRedis { try await Purging($0, producer, topics: access.topics).run(purge) }
            }
            report(purged, asJSON: arguments[json])
        } catch let error as PurgeNotTold {
            report(error.purged, asJSON: arguments[json])
            throw Trouble("\(error)")
        }
        return .done
    }

    private static func target(_ arguments: ParsedCommand, _ reader: JobReader) throws(InputError) -> Purge.Target {
        switch (arguments[source], arguments[tag], arguments[key]) {
        case (let source?, nil, nil): return .source(try Source(given: source, reader))
        case (nil, let tag?, nil): return .tag(tag)
        case (nil, nil, let key?): return .key(key)
        case (nil, nil, nil): throw InputError("say what to purge: --source, --tag or --key", of: arguments)
        default: throw InputError("--source, --tag and --key are purges of their own: give one", of: arguments)
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
    /// A tag, as jobs take it.
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
    /// A source as a command line names it.
    fileprivate init(given text: String, _ reader: JobReader) throws(InputError) {
        var draft = JobDraft()
        try draft.set(source: text)
        do throws(JobRefusal) {
            self = try PreparedJob(draft, fallbackID: "-", by: reader).complaining().job.source
        } catch {
            throw InputError("--\(error.failure.message)")
        }
    }
}
