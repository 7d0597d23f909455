import Formats
import HalcyonCluster
import JSON
import ProgramSettings

/// `halcyon get`: reads a result that is there.
enum GetCommand: Subcommand {
    private static let subject = Parameter<String?>.optionalArgument(
        "KEY-or-SOURCE", .text, help: "A result's key; or a source. \(SourceArgument.help).")
    private static let head = Parameter.flag(
        "head", help: "Print what is known of each result and read none: a result that can be read once stays.")
    private static let json = Parameter.flag("json", help: "Print what is known of each result as one JSON object.")

    static let command = Command(
        "get", summary: "Read a result from Redis without causing any work; exit code 3 when it is not there.",
        discussion: """
            The image goes into the file of -o, or to standard output when that is a file or a pipe; on a terminal, \
            with --head, and with --json and no -o, what is known of the result is printed and its bytes are not read. Of a job \
            with variants all are read, into the folder of -o; nothing is written when one of them is not there. A key with `handoff` \
            in it can be read once. A budget's order of use is not touched by any of this.
            """, parameters: [subject] + SizingOptions.allOfKeys + [ImageOutput.option, head, json],
        examples: [
            .init(
                "halcyon get https://example.org/cat.jpg --width 400 -o cat.jpg",
                "Write it into a file, if it is there."),
            .init("halcyon get https://example.org/cat.jpg --width 400 --head", "Whether it is there, and until when."),
            .init("halcyon get 'halcyon:{…}:…' | display", "By the key that an event named."),
            .init(
                "halcyon get $IMAGE --width 400 -o cat.jpg || halcyon submit $IMAGE --width 400 --wait",
                "Have it made if it is not there."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let (keys, source) = try await keys(arguments, configuration)
        if arguments[head], arguments[ImageOutput.option] != nil {
            throw InputError("--head reads no image, and so there is none to write (-o)", of: arguments)
        }
        let output = try ImageOutput(arguments, printsFacts: arguments[json] || arguments[head], count: keys.count)
        return try await configuration.withResults { results in
            let found = try await results.find(keys)
            var images: [FileNames.Image] = []
            for (key, found) in zip(keys, found) {
                guard let facts = found?.facts, let body = output.isNone ? [] : try await results.read(key)?.body
                else {
                    Console.complain(
                        "no result under \(key): never made, or no longer fresh; `halcyon submit … --wait` makes it")
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

    /// The keys that are asked for, and what the files are named after.
    private static func keys(
        _ arguments: ParsedCommand, _ configuration: Configuration
    ) async throws -> ([String], source: String) {
        if let text = arguments[subject], text.hasPrefix("halcyon:{") { return ([text], "result") }
        let prepared = try await SingleJob.prepare(
            source: arguments[subject], options: SizingOptions.keyFields, arguments, configuration)
        return (prepared.keys.map(\.description), prepared.job.source.text)
    }

    private static func describe(_ found: ResultTier.Found, _ key: String, _ file: String?, asJSON: Bool) {
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
        let findings = [facts.frames.map { "\($0) frames" }, facts.blurhash, facts.dominantColor].compactMap(\.self)
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
