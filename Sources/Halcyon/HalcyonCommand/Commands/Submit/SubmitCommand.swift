import HalcyonCluster
import HalcyonWire
import JSON
import Kafka
import ProgramSettings

/// `halcyon submit`: puts jobs on Kafka.
enum SubmitCommand: Subcommand {
    private static let sources = Parameter<[String]>.arguments(
        "SOURCE", .text, atLeast: 0, help: "\(SourceArgument.help); each becomes a job.")
    private static let file = Parameter<String?>.option(
        "from-file", .file, as: "FILE",
        help: "URLs or jobs as JSON, one a line (- for standard input); what a line says stands over the options.")
    private static let wait = Parameter.flag(
        "wait", help: "Wait until every job has ended, and print a line for each image; exit code 1 if any failed.")
    private static let timeout = Parameter<Duration?>.option(
        "timeout", .duration(in: .milliseconds(1) ... .days(365)), as: "DURATION",
        help: "When to give up. Unless given, 30s for getting jobs to Kafka, and no end for --wait.")
    private static let output = Parameter<String?>.option(
        "output", .folder, as: "DIR", help: "Write the images into this folder as they are ready; implies --wait.")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each job.")

    private static let fields = SizingOptions.fields + JobOptions.fields

    static let command = Command(
        "submit", summary: "Submit jobs, and wait for them if asked to.",
        discussion: """
            Each job is checked like a worker checks it before any is sent. Without --wait the jobs' ids are printed \
            when Kafka has the jobs. With --wait, standard error says how often jobs were tried and what happened last, \
            when they are tried again. Ctrl-C ends the waiting; jobs that were submitted go on.
            """,
        parameters: [sources] + SizingOptions.all + JobOptions.fields.map(\.parameter) + [
            file, wait, timeout, output, json,
        ],
        examples: [
            .init(
                "halcyon submit https://example.org/cat.jpg --width 400 --height 300 --wait --output images",
                "Have one image sized and written into a folder."),
            .init(
                "halcyon submit --from-file urls.txt --width 400 --format webp --lane low", "Many; others go first."),
            .init(
                "halcyon submit https://example.org/cat.jpg --job sizes.json --output images",
                "All the variants of sizes.json, from one fetch."),
            .init(
                "jq -c '.[]' jobs.json | halcyon submit --from-file - --wait --json",
                "Jobs as JSON, and JSON of what came."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let jobs = try await JobList.read(
            sources: arguments[sources], file: arguments[file], options: fields, arguments, configuration.jobReader)
        let submission = Submission(
            batch: Batch(jobs), kafka: KafkaAccess(configuration), timeout: arguments[timeout], asJSON: arguments[json])
        if let folder = arguments[output] {
            try await Files.makeFolder(folder)
            return try await configuration.withResults { results in
                let stems = FileNames.stems(of: jobs.map(\.job.source.text))
                return try await submission.wait(
                    writingTo: Gallery(folder: folder, results: results, stems: stems))
            }
        }
        return try await arguments[wait] ? submission.wait(writingTo: nil) : submission.send()
    }
}
