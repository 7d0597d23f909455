import HalcyonCluster
import HalcyonCoding
import JSON
import Kafka
import ProgramSettings

/// `halcyon submit`: sends jobs to Kafka.
enum SubmitCommand: Subcommand {
    private static let sources = Parameter<[String]>.arguments(
        "SOURCE", .text, atLeast: 0, help: "\(SourceArgument.help). Each source becomes a job.")
    private static let file = Parameter<String?>.option(
        "from-file", .file, as: "FILE",
        help: "Read URLs or JSON jobs, one per line (- for standard input). A line overrides the options.")
    private static let wait = Parameter.flag(
        "wait", help: "Wait for all jobs and print a line for each image. Exits with code 1 if any job failed.")
    private static let timeout = Parameter<Duration?>.option(
        "timeout", .duration(in: .milliseconds(1) ... .days(365)), as: "DURATION",
        help: "Give up after this time. Default: 30s for sending jobs, and no limit for --wait.")
    private static let output = Parameter<String?>.option(
        "output", .folder, as: "DIR", help: "Write the images to this folder as they become ready. Implies --wait.")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each job.")

    private static let groups = SizingOptions.groups + JobOptions.groups

    static let command = Command(
        "submit", summary: "Submit jobs to the cluster, and optionally wait for their results.",
        discussion: """
            All jobs are validated before any is sent. Without --wait the command prints the job ids when Kafka has \
            acknowledged the jobs. With --wait it also reports retries on standard error, with the number of attempts \
            and the last failure. Ctrl-C stops waiting; submitted jobs continue.
            """,
        parameters: [sources, SizingOptions.job, file, wait, timeout, output, json], groups: groups.options,
        brief: SizingOptions.brief.union(JobOptions.brief),
        examples: [
            .init(
                "halcyon submit https://example.org/cat.jpg --width 400 --height 300 --wait --output images",
                "Resize one image and write it to a folder."),
            .init(
                "halcyon submit --from-file urls.txt --width 400 --format webp --lane low",
                "Submit many jobs at low priority."),
            .init(
                "halcyon submit https://example.org/cat.jpg --job sizes.json --output images",
                "Render all variants of sizes.json from one fetch."),
            .init(
                "jq -c '.[]' jobs.json | halcyon submit --from-file - --wait --json",
                "Submit JSON jobs and print the results as JSON."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let jobs = try await JobList.read(
            sources: arguments[sources], file: arguments[file], options: groups.fields, arguments, configuration)
        let submission = Submission(
            batch: SubmittedJobs(jobs), kafka: KafkaAccess(configuration), timeout: arguments[timeout],
            asJSON: arguments[json])
        if let folder = arguments[output] {
            try await Files.makeFolder(folder)
            return try await configuration.withResults { results in
                let stems = FileNames.stems(of: jobs.map(\.job.source.text))
                return try await submission.wait(
                    writingTo: OutputDirectory(folder: folder, results: results, stems: stems))
            }
        }
        return try await arguments[wait] ? submission.wait(writingTo: nil) : submission.send()
    }
}
