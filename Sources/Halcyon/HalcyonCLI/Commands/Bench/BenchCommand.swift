import Concurrency
import Formats
import HalcyonCluster
import HalcyonCoding
import Kafka
import ProgramSettings

/// `halcyon bench`: measures the performance of a running cluster under load.
enum BenchCommand: Subcommand {
    private static let sources = Parameter<[String]>.arguments(
        "SOURCE", .text, atLeast: 0,
        help:
            "\(SourceArgument.help). Jobs cycle through the sources. Default: avatars of the 26 letters, which need no "
            + "origin."
    )
    private static let sizes = Parameter.repeated(
        "size", .displaySize, as: "WxH",
        help:
            "Request each source in this size in points. Repeatable. Default: 400x300, unless the job has a size or a "
            + "preset."
    )
    private static let jobs = Parameter<Int?>.option(
        "jobs", .integer(in: 1 ... .max), as: "N", help: "Stop after N jobs.")
    private static let duration = Parameter<Duration?>.option(
        "duration", .duration(in: .milliseconds(1) ... .days(30)), as: "TIME",
        help: "Stop sending jobs after this time. Default: 10s, or no limit with --jobs.")
    private static let rate = Parameter<Double?>.option(
        "rate", .rate, as: "JOBS",
        help: "Send jobs at a constant rate, such as 50/s or 3000/min. Default: send the next when one has ended.")
    private static let concurrency = Parameter<Int>.option(
        "concurrency", .integer(in: 1...100_000), as: "N", default: 64,
        help: "Maximum number of jobs in flight.")
    private static let drainTimeout = Parameter<Duration>.option(
        "drain-timeout", .duration(in: .zero ... .days(1)), as: "TIME", default: .seconds(60),
        help: "How long to wait for outstanding jobs after --duration.")
    private static let json = Parameter.flag("json", help: "Print one JSON object with times in milliseconds.")

    private static let groups = SizingOptions.groups + JobOptions.groups

    static let command = Command(
        "bench", summary: "Measure throughput, latency and cache hits of a running cluster under load.",
        discussion: """
            Jobs are sent to Kafka, and their outcomes are read from the event topic, as with `halcyon submit`. The \
            report contains the throughput, the latency from before a job is sent until its event arrives, the ratios \
            of results that were already stored (hits) or shared with a concurrent job (coalesced), the duration of \
            each stage over the jobs that entered it, and the failures by code. Latencies are percentiles (p50, p95, \
            p99) and at most 2 % too high.

            The first round of sources and sizes renders results, and later rounds hit the cache. To measure \
            rendering, use --reload to render every job again, or --max-age -1 to store no results. To measure a cold \
            cache, use more sources and sizes than jobs.

            With --rate, jobs are sent without waiting for the cluster, up to --concurrency jobs in flight. Ctrl-C \
            stops the load and prints the results so far; submitted jobs continue. Exits with code 1 if jobs failed or \
            did not finish.
            """,
        parameters: [sources, sizes, jobs, duration, rate, concurrency, drainTimeout, SizingOptions.job, json],
        groups: groups.options, brief: SizingOptions.brief.union(JobOptions.brief),
        examples: [
            .init(
                "halcyon bench",
                "Render avatars for ten seconds, 64 at once. This load needs no origin."),
            .init(
                "halcyon bench https://example.org/cat.jpg https://example.org/dog.jpg --size 400x300 --size 90x90 "
                    + "--reload --jobs 1000", "Fetch and render every job."),
            .init("halcyon bench --rate 200/s --duration 1m --json", "Measure the latency at a fixed load."),
            .init(
                "halcyon bench https://example.org/cat.jpg --concurrency 500 --max-age -1",
                "Measure request coalescing."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let kafka = KafkaAccess(configuration)
        let drafts = try await drafts(arguments, configuration.jobReader)
        let reader = try await BatchCommands.reader(of: drafts, configuration)
        for draft in drafts {
            do throws(InvalidJobError) {
                _ = try ValidatedJob(draft, fallbackID: "-", by: reader)
            } catch {
                throw InputError(groups.fields.translated(error.failure.message, arguments), of: arguments)
            }
        }
        let time = arguments[duration] ?? (arguments[jobs] == nil ? .seconds(10) : nil)
        let limits = BenchLoad.Limits(
            jobs: arguments[jobs], time: time, rate: arguments[rate], concurrency: arguments[concurrency],
            drainTimeout: arguments[drainTimeout])
        try await kafka.requireNow(kafka.topics.lanes + [kafka.topics.events])
        let load = BenchLoad(drafts, limits, reader: reader, topics: kafka.topics)
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
            try await kafka.withProducer(limit: KafkaAccess.timeout) { producer in
                try await load.run(producer, events, from: start)
            }
        }

        let figures = load.figures
        let report = BenchReport(figures: figures, elapsed: start.duration(to: figures.last ?? .now))
        if Task.isCancelled { Console.complain("interrupted; submitted jobs continue") }
        if arguments[json] { Console.print(json: report.json) } else { Console.print(report.text) }
        if Task.isCancelled { return .interrupted }
        return figures.failed == 0 && figures.unfinished == 0 ? .done : .failed
    }

    /// Returns a job for each source in each size, without validating it.
    private static func drafts(_ arguments: ParsedCommand, _ reader: JobDecoder) async throws -> [JobBuilder] {
        let template = try await SingleJob.template(arguments, reader)
        let base = template.overlaid(by: try groups.fields.draft(from: arguments, over: template))
        guard base["id"] == nil else { throw InputError("an id can name only one job; omit it", of: arguments) }
        var jobs: [JobBuilder] = []
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
        // A job that defines its size, or has a preset that may do so, needs no default size.
        let isSized = ["preset", "width", "height", "sizer", "sizeForDisplay", "variants"].contains { base[$0] != nil }
        if wanted.isEmpty { wanted = isSized ? [] : [DisplaySize(width: 400, height: 300)] }
        return
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
    }

    private static func show(
        _ bar: ProgressBar, _ load: BenchLoad, _ limits: BenchLoad.Limits, from start: ContinuousClock.Instant
    ) async {
        while !Task.isCancelled {
            let (figures, elapsed) = (load.figures, start.duration(to: .now))
            if let jobs = limits.jobs {
                bar.show(ended: figures.ended, of: jobs, failures: figures.failed, elapsed: elapsed)
            } else {
                // With a duration the total is unknown, so show the jobs in flight as the rest.
                bar.show(
                    ended: figures.ended, of: figures.ended + max(0, figures.unfinished), failures: figures.failed,
                    elapsed: elapsed)
            }
            await Task.sleepUnlessCancelled(for: .milliseconds(200))
        }
    }
}

/// The size of a display in points.
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
