import HalcyonModel
import HalcyonWorker
import ProgramSettings
import Vips

extension ProgramOptions {
    /// Images, results, and how workers work.
    static let workerSettings: [Setting<ProgramOptions>] = [
        // Images.
        Setting("images.formats", \.formats, .list(of: .oneOf))
            .help("The formats of sources that are loaded, known by their bytes; initials are drawn as png."),
        Setting("images.frames", \.worker.images.frames, .integer(in: 1...65_535))
            .help("Frames of the longest animation that is decoded."),
        Setting("images.maximumPixels", \.worker.images.sourcePixels, .integer(in: 1...(1 << 40)))
            .help("Pixels of the largest source, all frames counted."),
        Setting("images.maximumDecodedBytes", \.worker.images.decodedBytes, .byteSize(in: 1...(1 << 40)))
            .help("Memory that decoding one source may take."),
        Setting("images.maximumOutputPixels", \.worker.images.outputPixels, .integer(in: 1...(1 << 32)))
            .help("Pixels of the largest output."),
        Setting("images.renderTime", \.worker.images.renderTime, .duration(in: .milliseconds(1) ... .seconds(3600)))
            .help("Time for one rendering, from the first look at the source to the last byte of the output."),
        Setting("images.childMemory", \.renderChildren.memory, .byteSize(in: (64 << 20)...(1 << 40)))
            .help(
                "Memory of a child at most (RLIMIT_DATA). Children render animations, what takes more than 64 MiB, and what cannot be stopped half way (AVIF, HEIF, JPEG XL, SVG, PDF)."
            ),
        Setting("images.tolerance", \.worker.images.tolerance, .oneOf)
            .help("Whether what there is of a source that ends too early is rendered, where the job does not say."),

        // Results.
        Setting("cache.defaultTTL", \.worker.results.defaultLifetime, .seconds(in: .milliseconds(1) ... .days(36_525)))
            .help("Life of a result when neither the job nor the origin says how long."),
        Setting("cache.jitter", \.worker.results.jitter, .number(in: 0...0.5))
            .help("Part of a life that no job chose which is taken off at random, so that not all results go at once."),
        Setting("cache.maximumBytes", \.worker.results.budget.bytes, .zeroAsNil(.byteSize(in: 0...(1 << 50))))
            .help("Bytes that the results of one tenant may take together; what was used last stays. 0 for no limit."),
        Setting("cache.maximumPixels", \.worker.results.budget.pixels, .zeroAsNil(.integer(in: 0...(1 << 50))))
            .help("Pixels that they may have together, all frames counted; 0 for no limit."),
        Setting("cache.maximumCount", \.worker.results.budget.count, .zeroAsNil(.integer(in: 0...(1 << 50))))
            .help("How many results of one tenant there may be; 0 for no limit."),
        Setting("delivery.inlineLimit", \.worker.results.inlineLimit, .byteSize(in: 0...(700 << 10)))
            .help("The largest image that an event may carry; Kafka takes 1 MiB a message."),
        Setting("delivery.handOffTTL", \.worker.results.handOffLifetime, .seconds(in: .milliseconds(1) ... .days(1)))
            .help("Life of an image that may be read only once."),
        Setting("delivery.puts", \.worker.puts, .integer(in: 1...10_000))
            .help("Images on their way at once to where jobs have them put by HTTP."),

        // The worker.
        Setting("worker.concurrency", \.worker.concurrency, .integer(in: 0...256))
            .help(
                "Images rendered at once; 0 for one for each processor that it may use, by its container's limit too."),
        Setting("worker.fetches", \.worker.fetches, .integer(in: 1...10_000))
            .help("Sources on their way, or in memory waiting to be rendered."),
        Setting("worker.memoryLimit", \.worker.memoryLimit, .byteSize(in: 0...(1 << 40)))
            .help(
                "Memory that a worker and its children may hold together: up to 96 MiB for the process itself; of the rest a quarter for sources that wait, and three quarters for renderings, as estimated before they begin. What has no room waits, and partitions are paused; what never would ends as too_many_pixels. 0 for half of what its container or machine has."
            ),
        Setting("worker.window", \.worker.consumer.window, .integer(in: 1...100_000))
            .help("Jobs of one partition under way at once."),
        Setting("worker.windowBytes", \.worker.consumer.windowBytes, .byteSize(in: 1...(1 << 40)))
            .help("What the messages of those jobs may weigh together; one that weighs more comes alone."),
        Setting("worker.rebalancePatience", \.worker.consumer.revocationPatience, .duration())
            .help(
                "Time to finish what was begun when the group shares its partitions anew; the whole group waits for it."
            ),
        Setting("worker.rollInterval", \.worker.roll.interval, .duration(in: .milliseconds(100) ... .seconds(3600)))
            .help("How often a worker says that it is there; one that starts waits for the others to say so."),
        Setting("worker.grace", \.worker.grace, .duration()).help("Time to finish what was begun when asked to stop."),
        Setting("health.patience", \.worker.health.patience, .duration(in: .milliseconds(100) ... .seconds(3600)))
            .help("For how long something may be late until a worker counts as stuck."),
        Setting("worker.stuckLimit", \.worker.health.stuckLimit, .zeroAsNil(.duration(in: .zero ... .days(1))))
            .help("How long a worker may be stuck until it ends itself; 0 for ever."),
        Setting("worker.cancelMemory", \.worker.cancelMemory, .seconds(in: .seconds(1) ... .days(1)))
            .help("For how long it is remembered that a job was cancelled which has not been taken yet."),
        Setting("worker.cancelledJobs", \.worker.cancelledJobs, .integer(in: 1...10_000_000))
            .help("Of how many jobs; of more the oldest are forgotten."),
        Setting("events.progressInterval", \.worker.progressInterval, .duration(in: .zero ... .seconds(3600)))
            .help(
                "Time between two progress events of a job whose source is being loaded, and before the first; 0 for none."
            ),
        Setting("jobs.strict", \.worker.reader.isStrict, .bool)
            .help(
                "Whether an unknown field makes a job invalid. Otherwise it is ignored, and named in the job's event."),
        Setting("worker.maximumJobBytes", \.worker.reader.maximumBytes, .byteSize(in: 64...(64 << 20)))
            .help("The largest job message."),

        // How often a job ends, and who a worker is to Kafka.
        Setting("delivery", \.delivery, .oneOf)
            .help(
                "How often readers of committed events see a job end: at-least-once, or exactly-once, by transactions of Apache Kafka."
            ),
        Setting("delivery.linger", \.transactions.linger, .duration(in: .zero ... .seconds(1)))
            .help("For how long a job that has ended waits for others to be committed with it; exactly-once only."),
        Setting("delivery.batch", \.transactions.batch, .integer(in: 1...50_000))
            .help("Jobs of one transaction; exactly-once only."),
        Setting("worker.instance", \.instance, .text)
            .help(
                "The worker's own name, such as its pod's: who starts under it takes over from who had it. Unless set, a random one."
            ),
        Setting("worker.staticMember", \.isStaticMember, .bool)
            .help("Whether a worker that has a name keeps its partitions while it is away, for session.timeout.ms."),

        // When jobs that failed are tried again.
        Setting("retry.attempts", \.worker.retries.attempts, .integer(in: 1...100))
            .help("How often a job is tried in all when it fails in a way that may pass; 1 for once and not again."),
        Setting("retry.base", \.worker.retries.base, .seconds(in: .milliseconds(1) ... .seconds(60)))
            .help(
                "Up to how long it waits before the second attempt; it doubles with each. Waits are drawn at random from 0."
            ),
        Setting("retry.inProcess", \.worker.retries.inProcess, .seconds(in: .zero ... .seconds(60)))
            .help("The longest wait that the worker itself waits; what takes longer goes through a topic of retries."),
        Setting("retry.budget", \.worker.retries.budget, .seconds(in: .zero ... .days(1)))
            .help("For how long after its first attempt a job is tried again."),
        Setting(
            "retry.delays", \.worker.topics.retryDelays, .list(of: .duration(in: .milliseconds(10) ... .seconds(3600)))
        )
        .help(
            "The longest waits in the topics of retries, which are named after them (retry.10s); the same for all workers. A topic that is left out is read no more."
        ),

        // How workers share work, and which jobs go first.
        Setting("leases.duration", \.worker.leases.duration, .duration(in: .milliseconds(500) ... .seconds(600)))
            .help(
                "For how long nobody does the work of a worker that has died. It is prolonged three times in this time."
            ),
        Setting("leases.patience", \.worker.leases.patience, .duration(in: .zero ... .seconds(600)))
            .help("For how long Redis may give no answer until workers no longer share what they make."),
        Setting("worker.fetchesWithoutLeases", \.worker.fetchesWithoutLeases, .integer(in: 1...10_000))
            .help("Results made at once while Redis is away, when each worker makes what it needs."),
        Setting("poison.deaths", \.worker.leases.deaths.deaths, .integer(in: 2...100))
            .help("Deaths of workers, and of the children that try it then, after which what they made is poison."),
        Setting("poison.coincidences", \.worker.leases.deaths.coincidences, .integer(in: 2...1000))
            .help("Deaths of workers after which it is poison though nothing but their number speaks against it."),
        share(.high), share(.normal), share(.low),
    ]

    private static func share(_ lane: Lane) -> Setting<ProgramOptions> {
        Setting("lanes.\(lane.rawValue)", \.worker.shares[of: lane], .integer(in: 1...1000))
            .help("Share of this lane in fetching and rendering while jobs of all lanes wait.")
    }
}

extension [Lane: Int] {
    fileprivate subscript(of lane: Lane) -> Int {
        get { self[lane] ?? 1 }
        set { self[lane] = newValue }
    }
}
