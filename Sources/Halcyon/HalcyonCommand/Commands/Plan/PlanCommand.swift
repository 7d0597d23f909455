import Formats
import HalcyonModel
import ProgramSettings

/// `halcyon plan`: how many workers, and what of Kafka and Redis, a workload needs.
enum PlanCommand: Subcommand {
    private static let sources = Parameter<[String]>.arguments(
        "SOURCE", .file, atLeast: 0,
        help:
            "Pictures as they come: files of this machine, or sources as jobs name them. Each counts as much as the others."
    )
    private static let rate = Parameter<Double?>.option(
        "rate", .rate, as: "JOBS", help: "Jobs in the busiest time: 500/s, 60000/min, 1M/min.")
    private static let hitRatio = Parameter<Double>.option(
        "hit-ratio", .part, as: "0…1", default: 0,
        help: "Part of the jobs whose result is stored already, or is being made for another job.")
    private static let keptRatio = Parameter<Double>.option(
        "kept-ratio", .part, as: "0…1", default: 0,
        help: "Part of the others whose source is kept: another size of a picture that was loaded before.")
    private static let originLatency = Parameter<Duration>.option(
        "origin-latency", .duration(), as: "TIME", default: .milliseconds(200),
        help: "How long origins take to send a source, in the mean.")
    private static let life = Parameter<Duration?>.option(
        "life", .duration(in: .seconds(1) ... .seconds(1 << 40)), as: "TIME",
        help: "How long results are stored (cache.defaultTTL).")
    private static let distinct = Parameter<Double?>.option(
        "distinct", .amount, as: "N",
        help: "How many different results there are at all, such as 2M; else every one made is another.")
    private static let rendering = Parameter<Double?>.option(
        "rendering", .milliseconds, as: "MS", help: "What a rendering takes of a processor, in place of measuring.")
    private static let sourceBytes = Parameter<Int?>.option(
        "source-bytes", .byteSize(in: 1...1 << 40), as: "SIZE",
        help: "Bytes of a source, in place of SOURCE's.")
    private static let resultBytes = Parameter<Int?>.option(
        "result-bytes", .byteSize(in: 1...1 << 40), as: "SIZE",
        help: "Bytes of a result, in place of the measured.")
    private static let processors = Parameter<Int?>.option(
        "processors", .integer(in: 1...1024), as: "N", help: "Processors of a worker (worker.concurrency).")
    private static let utilization = Parameter<Double>.option(
        "utilization", .number(in: 0.05...0.95), as: "0…1", default: PlanRules().utilization,
        help: "Part of the workers' processors that the busiest time may take.")
    private static let spare = Parameter<Int>.option(
        "spare", .integer(in: 0...1000), as: "N", default: PlanRules().spare,
        help: "Workers that may be away.")
    private static let json = Parameter.flag("json", help: "Print the plan as one JSON object.")

    static let command = Command(
        "plan", summary: "Reckon how many workers, partitions and how much memory a workload needs.",
        discussion: """
            Renders each SOURCE here, with the options of a job, for two seconds, and reckons from what that takes of a \
            processor like this one. On a machine that is busy, or unlike those of the cluster, say --rendering. docs/capacity.md says how it is \
            reckoned, and how far that was from what was measured. Needs neither Kafka nor Redis.
            """,
        parameters: [
            sources, rate, hitRatio, keptRatio, originLatency, life, distinct, rendering, sourceBytes, resultBytes,
            processors, utilization, spare,
        ] + SizingOptions.all + [json],
        examples: [
            .init("halcyon plan photos/*.jpg --rate 500/s --width 400 --height 300", "From pictures of your own."),
            .init(
                "halcyon plan cat.jpg --rate 1M/min --hit-ratio 0.9 --width 400 --processors 8",
                "Nine of ten are stored already."),
            .init(
                "halcyon plan --rate 500/s --rendering 12 --source-bytes 400kB --result-bytes 30kB",
                "From figures; nothing is rendered."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        guard let rate = arguments[rate] else {
            throw InputError(
                "--rate is missing: how many jobs there are in the busiest time, such as 500/s", of: arguments)
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

    /// What a job's pictures take: measured where they are given, else as it is said.
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
                    "give a SOURCE that is like your own, or all of --rendering, --source-bytes and --result-bytes",
                    of: arguments)
            }
            sample = PictureSample(processorTime: processorTime, sourceSizes: [sourceBytes], resultBytes: resultBytes)
        } else {
            configuration.openFormats()
            sample = try await PictureSample.measured(arguments[sources], arguments, configuration)
            sample.processorTime = given.0 ?? sample.processorTime
            if let bytes = given.1 { sample.sourceSizes = [bytes] }
            sample.resultBytes = given.2 ?? sample.resultBytes
        }
        return sample
    }
}

extension Configuration {
    /// What the settings say of workers and of what is kept.
    fileprivate var planRules: PlanRules {
        var rules = PlanRules()
        rules.processors = concurrency
        (rules.fetches, rules.window) = (options.worker.fetches, options.worker.consumer.window)
        rules.keptSourceBytes = Double(options.worker.sourceTier.redisBytes)
        rules.sourceLife = options.worker.sourceTier.redisRetention
        return rules
    }
}

extension ValueKind<Double> {
    /// `500/s`, `60000/min`, `1M/min`, `2k`: jobs a second.
    static var rate: Self {
        ValueKind("jobs in a time, such as 500/s, 60000/min or 1M/min") { text in
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            let seconds = ["s": 1.0, "min": 60, "h": 3600, "d": 86_400]
            guard let count = count(parts[0]), parts.count <= 2, count > 0,
                let unit = seconds[parts.count == 2 ? String(parts[1]) : "s"]
            else { return nil }
            return count / unit
        }
    }

    /// `1500`, `20k`, `2M`: a number of things.
    static var amount: Self {
        ValueKind("a number above 0, such as 1500, 20k or 2M") { text in
            count(text[...]).flatMap { $0 > 0 ? $0 : nil }
        }
    }

    /// A part of a whole.
    static var part: Self {
        ValueKind("a number from 0 to 1") { text in Double(text).flatMap { (0...1).contains($0) ? $0 : nil } }
    }

    /// Milliseconds, not whole ones alone.
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
