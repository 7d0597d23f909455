import HalcyonModel
import JSON
import ProgramSettings

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
            """, parameters: [source] + SizingOptions.allOfKeys + [text, json],
        examples: [
            .init(
                "halcyon key https://example.org/cat.jpg --width 400 --height 300", "Print the key of an image."),
            .init(
                "redis-cli hget \"$(halcyon key https://example.org/cat.jpg --width 400)\" body > cat.jpg",
                "Read the image with any Redis client."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let prepared = try await SingleJob.prepare(
            source: arguments[source], options: SizingOptions.keyFields, arguments, Configuration(arguments))
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
