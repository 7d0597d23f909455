import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import ProgramSettings

/// `halcyon preset`: the commands for presets.
enum PresetCommands {
    static let group = CommandGroup(
        name: "preset", summary: "Register, list, inspect and delete presets, the named templates of jobs.",
        members: [
            PresetPutCommand.self, PresetListCommand.self, PresetShowCommand.self, PresetDeleteCommand.self,
        ])

    static let name = Parameter<String>.argument("NAME", .presetName, help: "The name of the preset.")

    /// Runs `body` with the service that changes presets.
    /// - Throws: ``CommandError`` if a server is unavailable or the preset cannot be changed.
    static func withService<Value: Sendable>(
        _ configuration: Configuration, _ body: (PresetService) async throws -> Value
    ) async throws -> Value {
        let access = KafkaAccess(configuration)
        // Check that the change can be announced before anything is changed.
        try await access.requireNow([access.topics.control])
        let fixed = Set(configuration.presets.map(\.name))
        do {
            return try await access.withProducer(limit: KafkaAccess.timeout) { producer in
                try await configuration.withRedis { redis in
                    try await body(
                        PresetService(
                            PresetStore(redis, topics: access.topics),
                            ControlPublisher(producer, topics: access.topics), isFixed: { fixed.contains($0) }))
                }
            }
        } catch let error as PresetError {
            throw CommandError("\(error)")
        } catch let error as PresetNotBroadcast {
            throw CommandError("\(error)")
        }
    }
}

extension ValueKind<String> {
    /// The name of a preset.
    static var presetName: Self {
        ValueKind(
            "1 to 64 letters, digits, dots, hyphens and underscores that begin with a letter or a digit, and not only"
        ) { PresetReference.isName($0) ? $0 : nil }
    }
}

/// `halcyon preset put`: registers a preset.
enum PresetPutCommand: Subcommand {
    private static let file = Parameter<String>.argument(
        "FILE", .file, help: "A JSON file with the preset (- for standard input).")
    private static let json = Parameter.flag("json", help: "Print the outcome as one JSON object.")

    static let command = Command(
        "put", summary: "Register a preset, or replace it by a new version.",
        discussion: """
            A preset is a JSON object. job contains the fields of its jobs, as in docs/jobs.md, without fields of a \
            single job such as id and source. overridable lists the fields that a job may set itself although they \
            belong to the preset. For example:

            {"job": {"width": 320, "height": 180, "format": "webp"}, "overridable": ["width", "height"]}

            The preset is checked as the template of a job, stored in Redis, and announced to workers and gateways. A \
            new preset has version 1. Each change increments the version, unless the file has a higher version. A \
            preset that has not changed keeps its version. Results of the old version remain until they expire. \
            Presets of the settings (presets.NAME) cannot be replaced.
            """, parameters: [PresetCommands.name, file, json],
        examples: [
            .init("halcyon preset put card card.json", "Register the preset card."),
            .init(
                #"echo '{"job": {"width": 320, "height": 180}}' | halcyon preset put card -"#,
                "Register a preset from standard input."),
            .init(
                "halcyon submit https://example.org/cat.jpg --preset card --wait",
                "Render an image with the preset."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let path = arguments[file]
        let bytes = try await Files.read(path, limit: Preset.maximumBytes)
        let name = arguments[PresetCommands.name]
        do {
            let preset = try Preset(name, json: bytes)
            let reader = configuration.jobReader
            // An invalid preset is reported even if no server is available.
            try reader.check(preset)
            let outcome = try await PresetCommands.withService(configuration) {
                try await $0.put(preset, checkedBy: reader)
            }
            report(outcome, of: name, asJSON: arguments[json])
        } catch let error as InvalidPresetError {
            throw InputError("\(path == "-" ? "standard input" : path): \(error.reason)")
        }
        return .done
    }

    private static func report(_ outcome: PresetStore.Outcome, of name: String, asJSON: Bool) {
        let (version, isStored) =
            switch outcome {
            case .stored(let version): (version, true)
            case .unchanged(let version): (version, false)
            }
        if asJSON {
            Console.printObject { writer in
                writer.member("name", name)
                writer.member("version", version)
                writer.member("changed", isStored)
            }
        } else {
            Console.print("\(name): version \(version) \(isStored ? "registered" : "is unchanged")")
        }
    }
}

/// `halcyon preset list`: lists presets.
enum PresetListCommand: Subcommand {
    private static let json = Parameter.flag("json", help: "Print one JSON object for each preset.")

    static let command = Command(
        "list", summary: "List the presets of the settings and the registered ones.",
        discussion: """
            Each line has the name, the version, the origin of the preset (settings or registered), and the fields of \
            its jobs.
            """, parameters: [json],
        examples: [.init("halcyon preset list --json | jq -r .name", "List the names of all presets.")])

    static let connection = Connection.redis

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let catalog = try await Configuration(arguments).catalog()
        for preset in catalog.all {
            let origin = catalog.isFixed(preset.name) ? "settings" : "registered"
            let isRead =
                arguments[json]
                ? Console.print(json: preset.json)
                : Console.print(
                    "\(preset.name)  version \(preset.version)  \(origin)  "
                        + String(decoding: preset.contents, as: UTF8.self))
            guard isRead else { break }
        }
        return .done
    }
}

/// `halcyon preset show`: prints a preset.
enum PresetShowCommand: Subcommand {
    private static let json = Parameter.flag(
        "json", help: "Accepted for consistency. A preset is always printed as JSON.")

    static let command = Command(
        "show", summary: "Print a preset as JSON.",
        discussion: """
            The output can be edited and passed to halcyon preset put after its version was removed or increased. \
            Exits with code 3 if there is no such preset.
            """, parameters: [PresetCommands.name, json],
        examples: [
            .init("halcyon preset show card", "Print the preset card."),
            .init(
                "halcyon preset show card | jq 'del(.version) | .job.quality = 70' | halcyon preset put card -",
                "Change one field of a preset."),
        ])

    static let connection = Connection.redis

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let name = arguments[PresetCommands.name]
        guard let preset = try await Configuration(arguments).catalog()[name] else {
            Console.complain("there is no preset \(name)")
            return .notFound
        }
        Console.print(json: preset.json)
        return .done
    }
}

/// `halcyon preset delete`: deletes a preset.
enum PresetDeleteCommand: Subcommand {
    private static let json = Parameter.flag("json", help: "Print the outcome as one JSON object.")

    static let command = Command(
        "delete", summary: "Delete a registered preset.",
        discussion: """
            Jobs that name it afterwards fail as invalid_job. Results remain until they expire. The version is \
            retained: a new preset with the same name gets the next one. Exits with code 3 if there is no such preset.
            """, parameters: [PresetCommands.name, json],
        examples: [.init("halcyon preset delete card", "Delete the preset card.")])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let name = arguments[PresetCommands.name]
        let isDeleted = try await PresetCommands.withService(Configuration(arguments)) { try await $0.delete(name) }
        guard isDeleted else {
            Console.complain("there is no registered preset \(name)")
            return .notFound
        }
        if arguments[json] {
            Console.printObject { writer in
                writer.member("name", name)
                writer.member("deleted", true)
            }
        } else {
            Console.print("\(name): deleted")
        }
        return .done
    }
}

/// `halcyon rerender`: makes the results of a preset again.
enum RerenderCommand: Subcommand {
    private static let preset = Parameter<String?>.option(
        "preset", .presetName, as: "NAME", help: "The name of the preset. Required.")
    private static let tenant = Parameter<String?>.option(
        "tenant", .tenant, as: "NAME", help: "Make only the results of a tenant again.")
    private static let lane = Parameter<String>.option(
        "lane", .oneOf(Lane.allCases.map(\.rawValue)), as: "LANE", default: Lane.low.rawValue,
        help: "The lane of the jobs. Default: low.")
    private static let reload = Parameter.flag("reload", help: "Fetch the sources again instead of using cached ones.")
    private static let dryRun = Parameter.flag("dry-run", help: "Print the number of jobs, and submit none.")

    static let command = Command(
        "rerender", summary: "Make everything again that was made with a preset and has not expired.",
        discussion: """
            Workers remember the jobs by which results were made with a preset, until the results expire. This command \
            has a worker submit these jobs again, as a batch, with the current version of the preset. Results that \
            exist already with its fields are not rendered again. Jobs with passwords or credentials are not \
            remembered.

            If the command is interrupted, repeat it with the same --id. `halcyon batch` follows, cancels and retries \
            the batch.
            """,
        parameters: [
            preset, tenant, lane, reload, dryRun, BatchCommands.newID, BatchCommands.webhook, BatchCommands.wait,
            BatchCommands.json,
        ],
        examples: [
            .init("halcyon rerender --preset card --wait", "After a change of the preset, make its results again."),
            .init("halcyon rerender --preset card --dry-run", "Count the jobs."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        guard let name = arguments[preset] else { throw InputError("give the preset with --preset", of: arguments) }
        let configuration = try Configuration(arguments)
        guard let current = try await configuration.catalog()[name] else {
            Console.complain("there is no preset \(name)")
            return .notFound
        }
        var template = JobBuilder()
        // Workers that have an older version load this one.
        template.set("preset", PresetReference(name, version: current.version))
        template.set("priority", arguments[lane])
        if arguments[dryRun] {
            let count = try await count(name, template, arguments[tenant], configuration)
            if arguments[BatchCommands.json] {
                Console.printObject { writer in
                    writer.member("preset", name)
                    writer.member("jobs", count)
                }
            } else {
                Console.print("\(name): \(counted(count, "job"))")
            }
            return .done
        }
        let id = arguments[BatchCommands.newID] ?? BatchWriter.newID
        let contents = BatchListing.Contents.preset(name, tenant: arguments[tenant], reload: arguments[reload])
        do {
            try await BatchCommands.list(
                contents, id, template, webhook: arguments[BatchCommands.webhook], configuration)
        } catch let error as InvalidJobError {
            throw InputError(error.failure.message, of: arguments)
        }
        return try await BatchCommands.followUp(
            id, arguments, configuration, said: "a worker lists the jobs of the preset \(name)"
        ) { $0.member("preset", name) }
    }

    /// Returns the number of jobs in the index.
    private static func count(
        _ preset: String, _ template: JobBuilder, _ tenant: String?, _ configuration: Configuration
    ) async throws -> Int {
        let reader = try await BatchCommands.reader(of: [template], configuration)
        let topics = configuration.topics
        return try await configuration.withRedis { redis in
            let index = PresetIndex(redis, topics: topics)
            var (count, cursor): (Int, PresetIndex.Cursor?) = (0, nil)
            repeat {
                let page = try await index.page(of: preset, after: cursor, 1000)
                count += page.jobs.count { job in
                    tenant.map { reader.isJob(template.overlaid(by: job), of: $0) } ?? true
                }
                cursor = page.next
            } while cursor != nil
            return count
        }
    }
}
