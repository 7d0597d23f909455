import HalcyonModel
import JSON
import ProgramSettings

/// `halcyon key`: under which key a result lies.
enum KeyCommand: Subcommand {
    private static let source = Parameter<String?>.optionalArgument(
        "SOURCE", .text, help: "\(SourceArgument.help).")
    private static let text = Parameter.flag("text", help: "Print the canonical texts that the key is made of.")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each key.")

    static let command = Command(
        "key", summary: "Print the keys under which results lie in Redis.",
        discussion: """
            The key is made of the source and of what changes the output, never of maxAge or ids, so it is known \
            before any work is done. A job with variants has a key for each, one a line. docs/keys.md says how to make it in any language. Nothing is asked and nothing \
            is loaded here.
            """, parameters: [source] + SizingOptions.allOfKeys + [text, json],
        examples: [
            .init("halcyon key https://example.org/cat.jpg --width 400 --height 300", "The key of a sized image."),
            .init(
                "redis-cli hget \"$(halcyon key https://example.org/cat.jpg --width 400)\" body > cat.jpg",
                "Read it with any Redis client."),
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
