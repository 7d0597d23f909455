import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import ProgramSettings

/// `halcyon batch`: the commands for batches.
enum BatchCommands {
    static let group = CommandGroup(
        name: "batch", summary: "Submit many jobs as one, follow, cancel and retry them.",
        members: [
            BatchCreateCommand.self, BatchStatusCommand.self, BatchListCommand.self, BatchFailuresCommand.self,
            BatchCancelCommand.self, BatchRetryCommand.self,
        ])

    // Parameters that the commands share.
    static let id = Parameter<String>.argument("BATCH", .batchID, help: "The id of the batch.")
    static let json = Parameter.flag("json", help: "Print JSON.")
    static let wait = Parameter.flag(
        "wait", help: "Wait until all jobs have ended. Exits with code 1 if a job failed.")
    static let webhook = Parameter<Webhook?>.option(
        "batch-webhook", .webhook, as: "TARGET",
        help: "Report the completion of the batch by HTTP, to a URL or a webhook name that the workers know.")
    static let newID = Parameter<String?>.option(
        "id", .batchID, as: "ID", help: "The id of the batch. Random by default.")

    static let exitCodeHelp = "Exits with code 3 if there is no such batch."

    /// Prints the state of a batch.
    static func show(_ batch: Batch, asJSON: Bool) {
        if asJSON { return Console.printObject { batch.writeMembers(to: &$0) } }
        let counts = batch.counts
        let others = [(counts.cancelled, "cancelled"), (counts.superseded, "superseded")]
            .filter { $0.0 > 0 }.map { ", \($0.0) \($0.1)" }.joined()
        let total = batch.total.map(String.init) ?? (batch.isListed ? "\(batch.submitted) or more" : "?")
        Console.print(
            "\(batch.id): \(batch.state.rawValue), \(counts.ended) of \(total) jobs "
                + "ended, \(counts.ready) ready, \(counts.failed) failed\(others)")
        if let error = batch.error { Console.print("\(batch.id): \(error.code): \(error.message)") }
    }

    /// Waits until a batch is completed, and shows its progress. A new batch is unknown until a worker has read its
    /// first message.
    /// - Returns: `failed` if a job failed, or not all jobs could be submitted.
    static func wait(for id: String, _ store: BatchStore, asJSON: Bool) async throws -> ExitCode {
        let bar = ProgressBar()
        defer { bar.clear() }
        let start = ContinuousClock.now
        while true {
            if let batch = try await store.batch(id) {
                if batch.completed != nil {
                    bar.clear()
                    show(batch, asJSON: asJSON)
                    return batch.counts.failed == 0 && batch.error == nil ? .done : .failed
                }
                bar.show(
                    ended: batch.counts.ended, of: batch.total ?? max(batch.counts.ended, batch.submitted),
                    failures: batch.counts.failed,
                    elapsed: start.duration(to: .now))
            }
            try await Task.sleep(for: .milliseconds(500))
        }
    }

    /// Waits for the batch with `--wait`, or tells that it was submitted.
    /// - Parameters:
    ///   - text: The text that follows the id of the batch.
    ///   - writeMember: Writes the member that follows the id in JSON.
    static func followUp(
        _ id: String, _ arguments: ParsedCommand, _ configuration: Configuration, said text: String,
        _ writeMember: (inout JSONWriter) -> Void
    ) async throws -> ExitCode {
        let asJSON = arguments[json]
        if arguments[wait] {
            return try await configuration.withBatches { try await wait(for: id, $0, asJSON: asJSON) }
        }
        if asJSON {
            Console.printObject { writer in
                writer.member("batch", id)
                writeMember(&writer)
            }
        } else {
            Console.print("\(id): \(text)")
        }
        return .done
    }

    /// Has a worker list the jobs of a batch.
    /// - Throws: ``InvalidJobError`` for an invalid template; errors of the servers.
    static func list(
        _ contents: BatchListing.Contents, _ id: String, _ template: JobBuilder, webhook: Webhook?,
        _ configuration: Configuration
    ) async throws {
        let reader = try await reader(of: [template], configuration)
        let access = KafkaAccess(configuration)
        try await access.requireNow([access.topics.batches])
        try await access.withProducer(limit: KafkaAccess.timeout) { producer in
            let writer = BatchWriter(id, producer, topics: access.topics, reader: reader, template: template)
            try writer.check(contents)
            try await writer.open(created: Timestamp.now.milliseconds, webhook: webhook)
            try await writer.list(contents)
        }
    }

    /// Returns the decoder for these jobs. Registered presets are read from Redis if a job has one.
    static func reader(of jobs: [JobBuilder], _ configuration: Configuration) async throws -> JobDecoder {
        try await reader(readsPresets: jobs.contains { $0["preset"] != nil }, configuration)
    }

    /// Returns the decoder for jobs.
    /// - Parameter readsPresets: True to read the registered presets from Redis.
    static func reader(readsPresets: Bool, _ configuration: Configuration) async throws -> JobDecoder {
        var reader =
            try await readsPresets ? configuration.readerWithRegisteredPresets() : configuration.jobReader
        reader.requiresPreset = configuration.options.presetsOnly
        return reader
    }

    /// Returns a batch.
    /// - Parameter patience: The time for which an unknown batch is awaited.
    /// - Throws: ``CommandError`` with the exit code `notFound` if it is unknown, `RedisError`.
    static func find(_ id: String, in store: BatchStore, patience: Duration = .zero) async throws -> Batch {
        let end = ContinuousClock.now + patience
        while true {
            if let batch = try await store.batch(id) { return batch }
            guard ContinuousClock.now < end else { break }
            try await Task.sleep(for: .milliseconds(200))
        }
        throw CommandError(
            "there is no batch \(id): it has expired, no job of it has ended, or the id is wrong",
            exitCode: .notFound)
    }
}

extension Configuration {
    /// Runs `body` with the stored batches and closes the connection afterwards.
    func withBatches<Value: Sendable>(_ body: (BatchStore) async throws -> Value) async throws -> Value {
        try await withRedis { try await body(BatchStore($0, options.worker.batches)) }
    }
}

extension ValueKind<String> {
    /// The id of a batch.
    static var batchID: Self {
        ValueKind("1 to \(Batch.longestID) letters, digits, dots, hyphens, underscores and colons") {
            Batch.isID($0) ? $0 : nil
        }
    }
}

/// `halcyon batch create`: submits jobs as a batch.
enum BatchCreateCommand: Subcommand {
    private static let file = Parameter<String?>.optionalArgument(
        "FILE", .text, help: "URLs or JSON jobs, one per line (- for standard input). A line overrides the options.")
    private static let prefix = Parameter<S3Prefix?>.option(
        "s3-prefix", .s3Prefix, as: "URL",
        help: "Submit a job for each object at s3://bucket/path/ instead. A worker lists them.")
    private static let groups = SizingOptions.groups + JobOptions.groups.map { $0.without("id") }

    static let command = Command(
        "create", summary: "Submit the jobs of a file, or the objects of a bucket, as a batch.",
        discussion: """
            All jobs are validated before any is sent. The jobs are numbered in the order of the lines. If the command \
            is interrupted, repeat it with the same --id: jobs with the same number count once.

            With --s3-prefix, the options and --job are those of all jobs. The command returns when Kafka has \
            acknowledged the request. The state is `listing` until all jobs are submitted.

            The event halcyon.batch.completed tells when all jobs have ended, and how.
            """,
        parameters: [
            file, prefix, SizingOptions.job, BatchCommands.newID, BatchCommands.webhook, BatchCommands.wait,
            BatchCommands.json,
        ], groups: groups.options, brief: SizingOptions.brief.union(JobOptions.brief),
        examples: [
            .init(
                "halcyon batch create urls.txt --width 400 --format webp --lane low --wait",
                "Make a thumbnail of each image, and wait for all of them."),
            .init(
                "halcyon batch create --s3-prefix s3://pictures/2026/ --width 400 --format webp --lane low",
                "Make a thumbnail of each object in a folder."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let id = arguments[BatchCommands.newID] ?? BatchWriter.newID
        if let prefix = arguments[prefix] {
            guard arguments[file] == nil else {
                throw InputError("FILE and --s3-prefix exclude each other", of: arguments)
            }
            let base = try await SingleJob.template(arguments, configuration.jobReader)
            let template = base.overlaid(by: try groups.fields.draft(from: arguments, over: base))
            do {
                try await BatchCommands.list(
                    .prefix(prefix.text), id, template, webhook: arguments[BatchCommands.webhook], configuration)
            } catch let error as InvalidJobError {
                throw InputError(groups.fields.translated(error.failure.message, arguments), of: arguments)
            }
            return try await BatchCommands.followUp(
                id, arguments, configuration, said: "a worker lists \(prefix.text)"
            ) { $0.member("prefix", prefix.text) }
        }
        guard let file = arguments[file] else { throw InputError("give a FILE or --s3-prefix", of: arguments) }
        let jobs = try await JobList.drafts(
            file: file, options: groups.fields, arguments, configuration)
        let reader = try await BatchCommands.reader(of: jobs.map(\.draft), configuration)
        let access = KafkaAccess(configuration)
        try await access.requireNow([access.topics.batches])
        try await access.withProducer(limit: KafkaAccess.timeout) { producer in
            let writer = BatchWriter(id, producer, topics: access.topics, reader: reader)
            try await BatchUpload(writer: writer, webhook: arguments[BatchCommands.webhook]).send(jobs)
        }
        return try await BatchCommands.followUp(
            id, arguments, configuration, said: "\(counted(jobs.count, "job")) submitted"
        ) { $0.member("jobs", jobs.count) }
    }
}

extension ValueKind<Webhook> {
    /// A URL or the name of a webhook.
    fileprivate static var webhook: Self {
        // The expectation names both forms.
        ValueKind("an http or https URL without user, or a name") { try? Webhook($0) }
    }
}

extension ValueKind<S3Prefix> {
    /// The beginning of the keys of objects in a bucket.
    fileprivate static var s3Prefix: Self {
        // The message of the parser is that of sources; the expectation names the form.
        ValueKind("a URL such as s3://bucket/path/") { try? S3Prefix($0) }
    }
}

/// `halcyon batch status`: shows a batch.
enum BatchStatusCommand: Subcommand {
    static let command = Command(
        "status", summary: "Show how many jobs of a batch have ended, and how.",
        discussion: """
            \(BatchCommands.exitCodeHelp) A new batch is unknown until a worker has read its first message: --wait \
            waits 10 seconds for it.
            """,
        parameters: [BatchCommands.id, BatchCommands.wait, BatchCommands.json],
        examples: [.init("halcyon batch status summer-catalogue --wait", "Wait until all jobs have ended.")])

    static let connection = Connection.redis

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let asJSON = arguments[BatchCommands.json]
        return try await Configuration(arguments).withBatches { store in
            let waits = arguments[BatchCommands.wait]
            let batch = try await BatchCommands.find(
                arguments[BatchCommands.id], in: store, patience: waits ? .seconds(10) : .zero)
            if waits {
                return try await BatchCommands.wait(for: batch.id, store, asJSON: asJSON)
            }
            BatchCommands.show(batch, asJSON: asJSON)
            return .done
        }
    }
}

/// `halcyon batch list`: lists batches.
enum BatchListCommand: Subcommand {
    private static let limit = Parameter<Int>.option(
        "limit", .integer(in: 1...10_000), as: "N", default: 100, help: "Maximum number of batches. Default: 100.")

    static let command = Command(
        "list", summary: "List batches, the newest first.", parameters: [limit, BatchCommands.json],
        examples: [.init("halcyon batch list", "Show the last 100 batches.")])

    static let connection = Connection.redis

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        try await Configuration(arguments).withBatches { store in
            for batch in try await store.newest(arguments[limit]) {
                BatchCommands.show(batch, asJSON: arguments[BatchCommands.json])
            }
            return .done
        }
    }
}

/// `halcyon batch failures`: lists the failed jobs of a batch.
enum BatchFailuresCommand: Subcommand {
    static let command = Command(
        "failures", summary: "List the jobs of a batch that failed, with the reasons.",
        discussion: """
            At most batches.maximumFailures failures are stored. All of them have events. \(BatchCommands.exitCodeHelp)
            """,
        parameters: [BatchCommands.id, BatchCommands.json],
        examples: [.init("halcyon batch failures summer-catalogue", "Show which jobs failed.")])

    static let connection = Connection.redis

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        try await Configuration(arguments).withBatches { store in
            let batch = try await BatchCommands.find(arguments[BatchCommands.id], in: store)
            for failure in try await store.failures(of: batch.id, from: 0, count: max(1, batch.counts.failed)) {
                if arguments[BatchCommands.json] {
                    Console.printObject { failure.writeMembers(to: &$0) }
                } else {
                    Console.print("\(failure.job): \(failure.code): \(failure.message)")
                }
            }
            return .done
        }
    }
}

/// `halcyon batch cancel`: cancels a batch.
enum BatchCancelCommand: Subcommand {
    static let command = Command(
        "cancel", summary: "Cancel the jobs of a batch that have not ended.",
        discussion: """
            The command returns when Kafka has acknowledged the request. Jobs that have not ended end as cancelled \
            when workers receive them. If the batch is closed, it completes then.
            """, parameters: [BatchCommands.id, BatchCommands.json],
        examples: [.init("halcyon batch cancel summer-catalogue", "Cancel a batch.")])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let access = KafkaAccess(configuration)
        try await access.requireNow([access.topics.batches])
        let id = arguments[BatchCommands.id]
        try await access.withProducer(limit: KafkaAccess.timeout) { producer in
            let writer = BatchWriter(id, producer, topics: access.topics, reader: configuration.jobReader)
            try await writer.cancel()
        }
        if arguments[BatchCommands.json] {
            Console.printObject { writer in
                writer.member("batch", id)
                writer.member("outcome", "told")
            }
        } else {
            Console.print("\(id): cancellation requested")
        }
        return .done
    }
}

/// `halcyon batch retry`: submits the failed jobs of a batch again.
enum BatchRetryCommand: Subcommand {
    static let command = Command(
        "retry", summary: "Submit the failed jobs of a batch again, as a new batch.",
        discussion: """
            The messages of the jobs are read from their topics, so only jobs that Kafka has not deleted can be \
            submitted again. At most batches.maximumFailures of them are known. \(BatchCommands.exitCodeHelp)
            """,
        parameters: [
            BatchCommands.id, BatchCommands.newID, BatchCommands.webhook, BatchCommands.wait, BatchCommands.json,
        ],
        examples: [.init("halcyon batch retry summer-catalogue --wait", "Try the failed jobs again.")])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let access = KafkaAccess(configuration)
        try await access.requireNow(access.topics.lanes + [access.topics.batches])
        return try await configuration.withBatches { store in
            let batch = try await BatchCommands.find(arguments[BatchCommands.id], in: store)
            let id =
                arguments[BatchCommands.newID]
                ?? BatchWriter.retryID(of: batch.id)
            let failures = try await store.failures(of: batch.id, from: 0, count: max(1, batch.counts.failed))
            let reader = try await BatchCommands.reader(readsPresets: true, configuration)
            let count = try await access.withProducer(limit: KafkaAccess.timeout) { producer in
                let writer = BatchWriter(id, producer, topics: access.topics, reader: reader)
                return try await BatchUpload(writer: writer, webhook: arguments[BatchCommands.webhook]).send(
                    failures, FailedJobReader(access.topics, properties: access.properties.reader))
            }
            guard count > 0 else { throw CommandError("\(batch.id): no failed job is known to Kafka") }
            let missing = batch.counts.failed - count
            let text = "\(counted(count, "job")) submitted"
            return try await BatchCommands.followUp(
                id, arguments, configuration, said: missing > 0 ? "\(text), \(missing) could not be found" : text
            ) { writer in
                writer.member("jobs", count)
                writer.member("missing", missing)
            }
        }
    }
}
