import Arguments
import CivilTime
import HalcyonCluster
import JSON

/// `halcyon get`: reads a result that is there.
enum GetCommand: Subcommand {
    private static let subject = Parameter<String?>.optionalArgument(
        "KEY-or-SOURCE", .text, help: "A result's key, or the URL of an image.")
    private static let json = Parameter.flag("json", help: "Print what is known of the result as one JSON object.")

    static let command = Command(
        "get", summary: "Read a result from Redis without causing any work; exit code 3 when it is not there.",
        discussion: """
            The image goes into the file of -o, or to standard output when that is a file or a pipe; on a terminal, \
            and with --json, what is known of the result is printed. A key with `handoff` in it can be read once.
            """, parameters: [subject] + SizingOptions.all + [ImageOutput.option, json],
        examples: [
            .init(
                "halcyon get https://example.org/cat.jpg --width 400 -o cat.jpg",
                "Write it into a file, if it is there."),
            .init("halcyon get 'halcyon:{…}:…' | display", "By the key that an event named."),
            .init(
                "halcyon get $IMAGE --width 400 -o cat.jpg || halcyon submit $IMAGE --width 400 --wait",
                "Have it made if it is not there."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let key = try await key(arguments, configuration)
        let output = ImageOutput(arguments, printsFacts: arguments[json])
        return try await configuration.withResults { results in
            let found = try await results.find(key)
            guard let found, let body = output.isNone ? [] : try await results.read(key)?.body else {
                Console.complain(
                    "no result under \(key): never made, or no longer fresh; `halcyon submit … --wait` makes it")
                return .notFound
            }
            try await output.write(body)
            if output.leavesStandardOutput { describe(found, key, output.path, asJSON: arguments[json]) }
            return .done
        }
    }

    private static func key(_ arguments: ParsedCommand, _ configuration: Configuration) async throws -> String {
        if let text = arguments[subject], text.hasPrefix("halcyon:{") { return text }
        return try await SingleJob.prepare(source: arguments[subject], arguments, configuration).key.description
    }

    private static func describe(_ found: ResultTier.Found, _ key: String, _ file: String?, asJSON: Bool) {
        let facts = found.facts
        let expires = Timestamp(seconds: found.expiresAt).rfc3339
        if asJSON {
            var writer = JSONWriter()
            writer.object { writer in
                writer.member("key", key)
                writer.member("expiresAt", expires)
                writer.member("result", facts)
                writer.member("file", file)
            }
            Console.print(json: writer.bytes)
            return
        }
        let target = file.map { ", in \($0)" } ?? "; -o FILE writes it"
        Console.print(
            """
            \(facts.width)x\(facts.height) \(facts.format.rawValue), \(byteText(facts.bytes)), \
            fresh until \(expires)\(target)
            """
        )
    }
}
