import Formats
import HalcyonModel
import ProgramSettings

/// `halcyon plan`: estimates the workers, Kafka and Redis capacity that a workload needs.
enum PlanCommand: Subcommand {
    private static let sources = Parameter<[String]>.arguments(
        "SOURCE", .file, atLeast: 0,
        help:
            "Representative images: local files, or sources as in jobs. All have equal weight."
    )
    private static let rate = Parameter<Double?>.option(
        "rate", .rate, as: "JOBS", help: "The rate of jobs at peak load, such as 500/s, 60000/min or 1M/min.")
    private static let hitRatio = Parameter<Double>.option(
        "hit-ratio", .part, as: "0…1", default: 0,
        help: "Fraction of jobs whose result is already stored or shared with a concurrent job.")
    private static let keptRatio = Parameter<Double>.option(
        "kept-ratio", .part, as: "0…1", default: 0,
        help: "Fraction of the other jobs whose source is cached, such as another size of the same image.")
    private static let originLatency = Parameter<Duration>.option(
        "origin-latency", .duration(), as: "TIME", default: .milliseconds(200),
        help: "Mean time for an origin to send a source.")
    private static let life = Parameter<Duration?>.option(
        "life", .duration(in: .seconds(1) ... .seconds(1 << 40)), as: "TIME",
        help: "The TTL of results. Default: cache.defaultTTL.")
    private static let distinct = Parameter<Double?>.option(
        "distinct", .amount, as: "N",
        help: "Number of distinct results, such as 2M. Default: every rendered result is distinct.")
    private static let storeRatio = Parameter<Double?>.option(
        "store-ratio", .part, as: "0…1",
        help: "With a result store: fraction of the hits that it serves, because Redis has evicted the result. Default "
            + "with --redis-bytes: the fraction of the results for which Redis has no room.")
    private static let redisBytes = Parameter<Int?>.option(
        "redis-bytes", .byteSize(in: 1...1 << 50), as: "SIZE",
        help: "With a result store: memory of Redis for results. Default with --store-ratio: enough for the same "
            + "fraction of the results as of the hits.")
    private static let rendering = Parameter<Double?>.option(
        "rendering", .milliseconds, as: "MS", help: "Processor time of a rendering, instead of a measurement.")
    private static let sourceBytes = Parameter<Int?>.option(
        "source-bytes", .byteSize(in: 1...1 << 40), as: "SIZE",
        help: "Size of a source, instead of the size of SOURCE.")
    private static let resultBytes = Parameter<Int?>.option(
        "result-bytes", .byteSize(in: 1...1 << 40), as: "SIZE",
        help: "Size of a result, instead of a measurement.")
    private static let processors = Parameter<Int?>.option(
        "processors", .integer(in: 1...1024), as: "N", help: "Processors per worker (worker.concurrency).")
    private static let utilization = Parameter<Double>.option(
        "utilization", .number(in: 0.05...0.95), as: "0…1", default: PlanRules().utilization,
        help: "Maximum utilization of the workers' processors at peak load.")
    private static let spare = Parameter<Int>.option(
        "spare", .integer(in: 0...1000), as: "N", default: PlanRules().spare,
        help: "Number of workers that may be unavailable.")
    private static let json = Parameter.flag("json", help: "Print the plan as one JSON object.")

    static let command = Command(
        "plan", summary: "Estimate the workers, partitions and memory that a workload needs.",
        discussion: """
            Renders the sources on this machine with the given job options for two seconds, and derives the capacity \
            from the processor time. If this machine is busy or unlike those of the cluster, give --rendering instead.

            --store-ratio or --redis-bytes plan a result store (results.store), which holds all results for their \
            life, while Redis holds those in use. Otherwise Redis holds all results.

            docs/capacity.md explains the model and its accuracy. Needs neither Kafka nor Redis.
            """,
        parameters: [
            sources, rate, hitRatio, keptRatio, originLatency, life, distinct, storeRatio, redisBytes, rendering,
            sourceBytes, resultBytes, processors, utilization, spare, SizingOptions.job, json,
        ],
        groups: SizingOptions.groups.options, brief: SizingOptions.brief,
        examples: [
            .init("halcyon plan photos/*.jpg --rate 500/s --width 400 --height 300", "Estimate from sample images."),
            .init(
                "halcyon plan cat.jpg --rate 1M/min --hit-ratio 0.9 --width 400 --processors 8",
                "Assume that nine of ten results are already stored."),
            .init(
                "halcyon plan --rate 500/s --rendering 12 --source-bytes 400kB --result-bytes 30kB",
                "Estimate from given figures, without rendering."),
            .init(
                "halcyon plan cat.jpg --rate 500/s --hit-ratio 0.9 --width 400 --redis-bytes 20GB",
                "Assume a result store below a Redis with 20 GB for results."),
        ])

    static let connection = Connection.none

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        guard let rate = arguments[rate] else {
            throw InputError(
                "--rate is missing; give the rate of jobs at peak load, such as 500/s", of: arguments)
        }
        let configuration = try Configuration(arguments)
        var rules = configuration.planRules
        rules.processors = arguments[processors] ?? rules.processors
        (rules.utilization, rules.spare) = (arguments[utilization], arguments[spare])
        let sample = try await sample(arguments, configuration)
        var workload = Workload(rate: rate, sourceSizes: sample.sourceSizes, resultBytes: sample.resultBytes)
        (workload.hitRatio, workload.keptRatio) = (arguments[hitRatio], arguments[keptRatio])
        workload.originLatency = arguments[originLatency] / .seconds(1)
        workload.life =
            arguments[life].map { $0 / .seconds(1) } ?? configuration.options.worker.results.defaultLifetime
        workload.distinct = arguments[distinct]
        (workload.storeRatio, rules.redisResultBytes) = (arguments[storeRatio], arguments[redisBytes].map(Double.init))
        workload.outputs = sample.outputs
        let costs = Costs(
            unit: try await PaceMeasurement.unit(processors: configuration.concurrency),
            rendering: sample.processorTime, renderingBytes: sample.memory)
        let report = PlanReport(
            plan: CapacityPlan(workload, costs, rules), workload: workload, costs: costs, rules: rules,
            pictures: sample.pictures)
        if arguments[json] { Console.print(json: report.json) } else { Console.print(report.text) }
        return .done
    }

    /// Measures the sources if there are any, and applies the costs that the options give.
    private static func sample(_ arguments: ParsedCommand, _ configuration: Configuration) async throws -> PictureSample
    {
        let given = (
            arguments[rendering].map { $0 / 1000 }, arguments[sourceBytes].map(Double.init),
            arguments[resultBytes].map(Double.init)
        )
        var sample: PictureSample
        if arguments[sources].isEmpty {
            guard let processorTime = given.0, let sourceBytes = given.1, let resultBytes = given.2 else {
                throw InputError(
                    "give a representative SOURCE, or all of --rendering, --source-bytes and --result-bytes",
                    of: arguments)
            }
            sample = PictureSample(processorTime: processorTime, sourceSizes: [sourceBytes], resultBytes: resultBytes)
        } else {
            try configuration.prepareImaging()
            sample = try await PictureSample.measured(arguments[sources], arguments, configuration)
            sample.processorTime = given.0 ?? sample.processorTime
            if let bytes = given.1 { sample.sourceSizes = [bytes] }
            sample.resultBytes = given.2 ?? sample.resultBytes
        }
        return sample
    }
}

extension Configuration {
    /// The rules of a plan from the settings of workers and caches.
    fileprivate var planRules: PlanRules {
        var rules = PlanRules()
        rules.processors = concurrency
        (rules.fetches, rules.window) = (options.worker.fetches, options.worker.consumer.window)
        rules.keptSourceBytes = Double(options.worker.sourceTier.redisBytes)
        rules.sourceLife = options.worker.sourceTier.redisRetention
        rules.storeQueueBytes = Double(options.resultStore.queueBytes)
        return rules
    }
}

extension ValueKind<Double> {
    /// A rate in jobs per second, such as `500/s`, `60000/min`, `1M/min` or `2k`.
    static var rate: Self {
        ValueKind("a rate of jobs such as 500/s, 60000/min or 1M/min") { text in
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            let seconds = ["s": 1.0, "min": 60, "h": 3600, "d": 86_400]
            guard let count = count(parts[0]), parts.count <= 2, count > 0,
                let unit = seconds[parts.count == 2 ? String(parts[1]) : "s"]
            else { return nil }
            return count / unit
        }
    }

    /// A number of items, such as `1500`, `20k` or `2M`.
    static var amount: Self {
        ValueKind("a number above 0, such as 1500, 20k or 2M") { text in
            count(text[...]).flatMap { $0 > 0 ? $0 : nil }
        }
    }

    /// A fraction from 0 to 1.
    static var part: Self {
        ValueKind("a number from 0 to 1") { text in Double(text).flatMap { (0...1).contains($0) ? $0 : nil } }
    }

    /// Milliseconds, possibly with a fraction.
    static var milliseconds: Self {
        ValueKind("milliseconds above 0, such as 8.5") { text in
            Double(text).flatMap { $0 > 0 && $0 < 1e9 ? $0 : nil }
        }
    }

    private static func count(_ text: Substring) -> Double? {
        let factors: [Character: Double] = ["k": 1e3, "M": 1e6]
        let factor = text.last.flatMap { factors[$0] }
        return Double(factor == nil ? text : text.dropLast()).flatMap { number in
            let value = number * (factor ?? 1)
            return value >= 0 && value <= 1e12 ? value : nil
        }
    }
}
