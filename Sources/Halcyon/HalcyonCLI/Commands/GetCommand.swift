import Formats
import HalcyonCluster
import HalcyonModel
import JSON
import ProgramSettings

/// `halcyon get`: reads a stored result.
enum GetCommand: Subcommand {
    private static let subject = Parameter<String?>.optionalArgument(
        "KEY-or-SOURCE", .text, help: "The key of a result, or its source. \(SourceArgument.help).")
    private static let head = Parameter.flag(
        "head", help: "Print the metadata of each result without reading its image. Read-once results are preserved.")
    private static let json = Parameter.flag("json", help: "Print the metadata of each result as one JSON object.")

    static let command = Command(
        "get", summary: "Read a stored result without creating a job. Exits with code 3 if it is missing.",
        discussion: """
            The result is read from Redis, or from the result store if Redis has evicted it (results.store).

            The image is written to the file given by -o, or to standard output if that is a file or a pipe. On a \
            terminal, with --head, or with --json but no -o, only the metadata of the result is printed.

            For a job with variants all results are read, to the folder given by -o. Nothing is written if one of them \
            is missing. A result whose key contains `handoff` can be read only once. Reading does not change the LRU \
            order of a quota.
            """, parameters: [subject, SizingOptions.job, ImageOutput.option, head, json],
        groups: SizingOptions.keyGroups.options, brief: SizingOptions.keyBrief,
        examples: [
            .init(
                "halcyon get https://example.org/cat.jpg --width 400 -o cat.jpg",
                "Write a stored result to a file."),
            .init(
                "halcyon get https://example.org/cat.jpg --width 400 --head",
                "Check whether it is stored, and until when."),
            .init("halcyon get 'halcyon:{…}:…' | display", "Read a result by the key from an event."),
            .init(
                "halcyon get $IMAGE --width 400 -o cat.jpg || halcyon submit $IMAGE --width 400 --wait",
                "Submit a job if the result is missing."),
        ])

    static let connection = Connection.redis

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let (keys, source) = try await keys(arguments, configuration)
        if arguments[head], arguments[ImageOutput.option] != nil {
            throw InputError("--head cannot be combined with -o, because it reads no image", of: arguments)
        }
        let output = try ImageOutput(arguments, printsFacts: arguments[json] || arguments[head], count: keys.count)
        return try await configuration.withResults { results in
            var found = try await results.find(keys)
            if configuration.resultStore != nil, found.contains(where: { $0 == nil }) {
                try await configuration.withResultStore { store in
                    for (key, found) in zip(keys, found) where found == nil {
                        guard let key = ResultKey(key), let stored = await store?.find(key) else { continue }
                        _ = try await results.restore(stored)
                    }
                }
                found = try await results.find(keys)
            }
            var images: [FileNames.Image] = []
            for (key, found) in zip(keys, found) {
                guard let facts = found?.facts, let body = output.isNone ? [] : try await results.read(key)?.body
                else {
                    Console.complain(
                        "no result under \(key); it was never rendered or has expired. "
                            + "Create it with `halcyon submit … --wait`")
                    continue
                }
                images.append(
                    FileNames.Image(bytes: body, width: facts.width, height: facts.height, format: facts.format))
            }
            guard images.count == keys.count else { return .notFound }
            let paths = try await output.write(images, of: source)
            guard output.leavesStandardOutput else { return .done }
            for (index, found) in found.enumerated() {
                if let found { describe(found, keys[index], paths[index], asJSON: arguments[json]) }
            }
            return .done
        }
    }

    /// Returns the requested keys, and the source that output files are named after.
    private static func keys(
        _ arguments: ParsedCommand, _ configuration: Configuration
    ) async throws -> ([String], source: String) {
        if let text = arguments[subject], text.hasPrefix("halcyon:{") { return ([text], "result") }
        let prepared = try await SingleJob.prepare(
            source: arguments[subject], options: SizingOptions.keyGroups.fields, arguments, configuration)
        return (prepared.keys.map(\.description), prepared.job.source.text)
    }

    private static func describe(_ found: ResultCache.Found, _ key: String, _ file: String?, asJSON: Bool) {
        let facts = found.facts
        let expires = Timestamp(seconds: found.expiresAt).rfc3339
        if asJSON {
            Console.printObject { writer in
                writer.member("key", key)
                writer.member("expiresAt", expires)
                writer.member("result", facts)
                writer.member("file", file)
            }
            return
        }
        let palette = facts.palette?.joined(separator: " ")
        let all: [String?] = [
            facts.frames.map { "\($0) frames" }, facts.blurhash, facts.dominantColor, palette, facts.thumbhash,
            facts.phash, facts.faces?.summary, facts.encoding?.summary,
        ]
        let findings = all.compactMap(\.self)
        let target = file.map { ", in \($0)" } ?? "; -o FILE writes it"
        Console.print(
            """
            \(facts.width)x\(facts.height) \(facts.format.rawValue), \(byteText(facts.bytes)), \
            \(findings.map { "\($0), " }.joined())\
            fresh until \(expires)\(target)
            """
        )
    }
}

/// `halcyon key`: prints the keys of a job's results.
enum KeyCommand: Subcommand {
    private static let source = Parameter<String?>.optionalArgument(
        "SOURCE", .text, help: "\(SourceArgument.help).")
    private static let text = Parameter.flag("text", help: "Print the canonical texts that the key is derived from.")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each key.")

    static let command = Command(
        "key", summary: "Print the Redis keys of the results of a job.",
        discussion: """
            The key is derived from the source and from the options that affect the output, but not from ids or \
            maxAge, so it is known before the job runs. A job with variants has one key for each, printed one per \
            line. docs/keys.md explains how to derive keys in any language. This command contacts no server.
            """, parameters: [source, SizingOptions.job, text, json], groups: SizingOptions.keyGroups.options,
        brief: SizingOptions.keyBrief,
        examples: [
            .init(
                "halcyon key https://example.org/cat.jpg --width 400 --height 300", "Print the key of an image."),
            .init(
                "redis-cli hget \"$(halcyon key https://example.org/cat.jpg --width 400)\" body > cat.jpg",
                "Read the image with any Redis client."),
        ])

    static let connection = Connection.redis

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let prepared = try await SingleJob.prepare(
            source: arguments[source], options: SizingOptions.keyGroups.fields, arguments, Configuration(arguments))
        let job = prepared.job
        if arguments[text], !arguments[json] { Console.print(job.request.canonicalText) }
        for (variant, key) in zip(job.variants, prepared.keys) {
            if arguments[json] {
                Console.printObject { writer in
                    writer.member("key", key.description)
                    writer.member("sourceText", job.request.canonicalText)
                    writer.member("variantText", variant.canonicalText)
                }
            } else {
                Console.print(arguments[text] ? variant.canonicalText : key.description)
            }
        }
        return .done
    }
}
