import Formats
import HalcyonCluster
import HalcyonWire
import Kafka
import ProgramSettings
import Threads

/// `halcyon bench`: loads a running cluster and says how it did.
enum BenchCommand: Subcommand {
    private static let sources = Parameter<[String]>.arguments(
        "SOURCE", .text, atLeast: 0,
        help:
            "\(SourceArgument.help); jobs take them in turn. Unless given, avatars of the 26 letters, which need no origin."
    )
    private static let sizes = Parameter.repeated(
        "size", .displaySize, as: "WxH",
        help:
            "A size in points, such as 400x300; may be given again: every source is asked for in each. Unless given, 400x300."
    )
    private static let jobs = Parameter<Int?>.option(
        "jobs", .integer(in: 1 ... .max), as: "N", help: "End after so many jobs.")
    private static let duration = Parameter<Duration?>.option(
        "duration", .duration(in: .milliseconds(1) ... .days(30)), as: "TIME",
        help: "Send no more jobs after this time. Unless given, 10s, and no end with --jobs.")
    private static let rate = Parameter<Double?>.option(
        "rate", .rate, as: "JOBS",
        help: "Jobs in a time, evenly: 50/s, 3000/min. Unless given, the next is sent when one has ended.")
    private static let concurrency = Parameter<Int>.option(
        "concurrency", .integer(in: 1...100_000), as: "N", default: 64,
        help: "Jobs that are under way at once, at most.")
    private static let patience = Parameter<Duration>.option(
        "patience", .duration(in: .zero ... .days(1)), as: "TIME", default: .seconds(60),
        help: "How long the last jobs are waited for once --duration is over.")
    private static let json = Parameter.flag("json", help: "Print one JSON object; times are milliseconds.")

    private static let fields = SizingOptions.fields + JobOptions.fields

    static let command = Command(
        "bench", summary: "Load a running cluster, and print throughput, latency and where results came from.",
        discussion: """
            Jobs go to Kafka and their ends are read from the topic of events, as with submit. Printed are how many ended in a second; how long they took, from \
            before a job was sent until its event was here (half of the jobs, 95 % and 99 % of them were done in the time beside p50, p95 and p99, which is at \
            most 2 % too long); the parts of the results that were there already (hits) and that were made for another job at the same time (coalesced); the \
            stages as events tell them, of the jobs that entered them; and failures by code.

            The first round of sources and sizes makes results, and later rounds find them: --reload has each made anew, --max-age -1 stores none, and more \
            sources and sizes than jobs show a cluster that knows nothing yet. With --rate the latency is that of a load that does not wait for the \
            cluster, until --concurrency jobs are under way. Ctrl-C ends it with the figures so far; jobs that were submitted go on. Exit code 1 \
            says that jobs failed or did not end.
            """,
        parameters: [sources, sizes, jobs, duration, rate, concurrency, patience] + SizingOptions.all
            + JobOptions.fields.map(\.parameter) + [json],
        examples: [
            .init(
                "halcyon bench",
                "Avatars for ten seconds, 64 at a time: what Kafka, Redis and workers do without origins."),
            .init(
                "halcyon bench https://example.org/cat.jpg https://example.org/dog.jpg --size 400x300 --size 90x90 --reload --jobs 1000",
                "Every job fetches and renders."),
            .init("halcyon bench --rate 200/s --duration 1m --json", "How long do jobs take at this load?"),
            .init("halcyon bench https://example.org/cat.jpg --concurrency 500 --max-age -1", "How much is shared?"),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let kafka = KafkaAccess(configuration)
        let drafts = try await drafts(arguments, configuration.jobReader)
        let time = arguments[duration] ?? (arguments[jobs] == nil ? .seconds(10) : nil)
        let limits = BenchLoad.Limits(
            jobs: arguments[jobs], time: time, rate: arguments[rate], concurrency: arguments[concurrency],
            patience: arguments[patience])
        try await kafka.requireNow(kafka.topics.lanes + [kafka.topics.events])
        let load = BenchLoad(drafts, limits, reader: configuration.jobReader, topics: kafka.topics)
        let events = try await TopicReader.open(
            kafka.topics.events, from: .end, properties: kafka.properties.reader, events: kafka.notices)
        let start = ContinuousClock.now
        let bar = ProgressBar()
        let shown = Task { await show(bar, load, limits, from: start) }
        try await closing {
            shown.cancel()
            await shown.value
            bar.clear()
            await events.close()
        } after: {
            try await kafka.withProducer(limit: KafkaAccess.patience) { producer in
                try await load.run(producer, events, from: start)
            }
        }

        let figures = load.figures
        let report = BenchReport(figures: figures, elapsed: start.duration(to: figures.last ?? .now))
        if Task.isCancelled { Console.complain("interrupted; jobs that were submitted go on") }
        if arguments[json] { Console.print(json: report.json) } else { Console.print(report.text) }
        if Task.isCancelled { return .interrupted }
        return figures.failed == 0 && figures.unfinished == 0 ? .done : .failed
    }

    /// A job for each source in each size, read once, so that a mistake is told before anything is sent.
    private static func drafts(_ arguments: ParsedCommand, _ reader: JobReader) async throws -> [JobDraft] {
        let template = try await SingleJob.template(arguments, reader)
        let base = template.overlaid(by: try fields.draft(from: arguments, over: template))
        guard base["id"] == nil else { throw InputError("an id names one job, and there are many", of: arguments) }
        var jobs: [JobDraft] = []
        for source in arguments[sources] {
            var job = base
            try job.set(source: source)
            jobs.append(job)
        }
        if jobs.isEmpty, base["source"] != nil { jobs = [base] }
        if jobs.isEmpty {
            jobs = "ABCDEFGHIJKLMNOPQRSTUVWXYZ".map { letter in
                var job = base
                job.set("source", "initials:\(letter)")
                return job
            }
        }
        var wanted = arguments[sizes]
        // What the job says of its size itself is enough.
        let isSized = ["width", "height", "sizer", "sizeForDisplay", "variants"].contains { base[$0] != nil }
        if wanted.isEmpty { wanted = isSized ? [] : [DisplaySize(width: 400, height: 300)] }
        let drafts =
            wanted.isEmpty
            ? jobs
            : wanted.flatMap { size in
                jobs.map { job in
                    var job = job
                    job.set("width", size.width)
                    job.set("height", size.height)
                    return job
                }
            }
        for draft in drafts {
            do throws(JobRefusal) {
                _ = try PreparedJob(draft, fallbackID: "-", by: reader)
            } catch {
                throw InputError(fields.translated(error.failure.message, arguments), of: arguments)
            }
        }
        return drafts
    }

    private static func show(
        _ bar: ProgressBar, _ load: BenchLoad, _ limits: BenchLoad.Limits, from start: ContinuousClock.Instant
    ) async {
        while !Task.isCancelled {
            let (figures, elapsed) = (load.figures, start.duration(to: .now))
            if let jobs = limits.jobs {
                bar.show(ended: figures.ended, of: jobs, failures: figures.failed, elapsed: elapsed)
            } else {
                // Of a time there is no number of jobs: what is under way is what is left.
                bar.show(
                    ended: figures.ended, of: figures.ended + max(0, figures.unfinished), failures: figures.failed,
                    elapsed: elapsed)
            }
            await Task.sleepUnlessCancelled(for: .milliseconds(200))
        }
    }
}

/// A display in points.
struct DisplaySize: Sendable {
    let width: Double
    let height: Double
}

extension ValueKind<DisplaySize> {
    static var displaySize: Self {
        ValueKind("WIDTHxHEIGHT in points, such as 400x300") { text in
            let sides = text.split(separator: "x", omittingEmptySubsequences: false).map { Double($0) ?? .nan }
            guard sides.count == 2, sides.allSatisfy({ $0.isFinite && $0 > 0 }) else { return nil }
            return DisplaySize(width: sides[0], height: sides[1])
        }
    }
}
