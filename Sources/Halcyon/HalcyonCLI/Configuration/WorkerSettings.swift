import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonWorker
import ProgramSettings
import Vips

extension ProgramOptions {
    /// Settings of images, results and workers.
    static let workerSettings: [Setting<ProgramOptions>] = [
        // Images.
        Setting("images.formats", \.formats, .list(of: .oneOf))
            .help("Source formats that are accepted, detected from the bytes. Initials are drawn as png."),
        Setting("images.fonts", \.fonts, .absolutePath)
            .help("Folder of the fonts for the processor text, with its subfolders."),
        Setting("images.frames", \.worker.images.frames, .integer(in: 1...65_535))
            .help("Maximum number of frames of an animation that are decoded."),
        Setting("images.maximumPixels", \.worker.images.sourcePixels, .integer(in: 1...(1 << 40)))
            .help("Maximum number of pixels of a source, over all frames."),
        Setting("images.maximumDecodedBytes", \.worker.images.decodedBytes, .byteSize(in: 1...(1 << 40)))
            .help("Maximum memory for decoding one source."),
        Setting("images.maximumOutputPixels", \.worker.images.outputPixels, .integer(in: 1...(1 << 32)))
            .help("Maximum number of pixels of an output."),
        Setting("images.maximumEncodings", \.worker.images.encodings, .integer(in: 2...64))
            .help("Maximum number of encodings of a search for a quality or a number of bytes, for each format."),
        Setting("images.renderTimeout", \.worker.images.renderTime, .duration(in: .milliseconds(1) ... .seconds(3600)))
            .help("Timeout of one rendering, from opening the source to the last byte of the output."),
        Setting("images.renderProcessMemory", \.renderChildren.memory, .byteSize(in: (64 << 20)...(1 << 40)))
            .help(
                """
                Memory limit of a render process (RLIMIT_DATA). Render processes handle animations, renderings above \
                64 MiB, and codecs that cannot be interrupted (AVIF, HEIF, JPEG XL, SVG, PDF).
                """),
        Setting("images.detector", \.worker.detector.command, .command)
            .help(
                """
                Program with its arguments that detects faces and objects (docs/detectors.md), separated by spaces. \
                None by default.
                """),
        Setting("images.detectorName", \.worker.reader.detector, .detectorName)
            .help(
                """
                Name and version of the detector, which must be what the program reports. They are part of keys, so \
                set them for workers, gateways and commands alike.
                """),
        Setting("images.detectorMemory", \.worker.detector.memory, .byteSize(in: (32 << 20)...(1 << 40)))
            .help("Memory limit of a detector process (RLIMIT_DATA), which is reserved while it works."),
        Setting(
            "images.detectorTimeout", \.worker.detector.timeLimit, .duration(in: .milliseconds(1) ... .seconds(600))
        )
        .help("Timeout for the start of a detector process and for each picture."),
        Setting("images.detectorSide", \.worker.detector.longestSide, .integer(in: 16...4096))
            .help("Longer side in pixels to which pictures are reduced before they are sent to the detector."),
        Setting("images.tolerance", \.worker.images.tolerance, .oneOf)
            .help("Default for truncated sources: strict rejects them, truncated renders the part that is there."),

        // Results.
        Setting("cache.defaultTTL", \.worker.results.defaultLifetime, .seconds(in: .milliseconds(1) ... .days(36_525)))
            .help("TTL of a result if neither the job nor the origin specifies one."),
        Setting("cache.jitter", \.worker.results.jitter, .number(in: 0...0.5))
            .help("Fraction of TTLs not set by jobs that is subtracted at random to spread expiry."),
        Setting("cache.maximumBytes", \.worker.results.budget.bytes, .zeroAsNil(.byteSize(in: 0...(1 << 50))))
            .help("Quota in bytes for the results of one tenant, with LRU eviction; 0 for no limit."),
        Setting("cache.maximumPixels", \.worker.results.budget.pixels, .zeroAsNil(.integer(in: 0...(1 << 50))))
            .help("Quota in pixels for the results of one tenant, over all frames; 0 for no limit."),
        Setting("cache.maximumCount", \.worker.results.budget.count, .zeroAsNil(.integer(in: 0...(1 << 50))))
            .help("Maximum number of results of one tenant; 0 for no limit."),
        Setting("delivery.inlineLimit", \.worker.results.inlineLimit, .byteSize(in: 0...(700 << 10)))
            .help("Maximum size of an image embedded in an event; Kafka's default message limit is 1 MiB."),
        Setting("delivery.oneReadTTL", \.worker.results.handOffLifetime, .seconds(in: .milliseconds(1) ... .days(1)))
            .help("TTL of an image that can be read only once."),
        Setting("delivery.putConcurrency", \.worker.puts, .integer(in: 1...10_000))
            .help("Maximum number of concurrent uploads of a worker to URLs of jobs."),
        Setting("delivery.putHostConcurrency", \.worker.putTargets.concurrency, .integer(in: 1...10_000))
            .help("Maximum number of concurrent uploads of a worker to one host."),
        Setting("delivery.putHostQueue", \.worker.putTargets.queue, .integer(in: 0...100_000))
            .help("Maximum number of further uploads that wait for it in a worker; jobs of others are retried later."),
        Setting("delivery.putHostFailures", \.worker.putTargets.failures, .integer(in: 1...1000))
            .help(
                "Consecutive failures that open the circuit breaker of a host; then one upload at a time probes it."),
        Setting("delivery.putHostWait", \.worker.putPatience, .duration(in: .zero ... .seconds(600)))
            .help("Maximum time that an upload waits in a worker; then its job is retried later."),

        // The worker.
        Setting("worker.concurrency", \.worker.concurrency, .integer(in: 0...256))
            .help("Number of concurrent renderings; 0 for one per CPU that the container or machine provides."),
        Setting("worker.fetches", \.worker.fetches, .integer(in: 1...10_000))
            .help("Maximum number of sources that are being fetched or wait in memory for rendering."),
        Setting("worker.memoryLimit", \.worker.memoryLimit, .byteSize(in: 0...(1 << 40)))
            .help(
                """
                Memory limit of a worker and its render processes: up to 96 MiB for the process itself, a quarter of \
                the rest for fetched sources, and three quarters for renderings, by estimate. Work that does not fit \
                waits, and partitions are paused. Work that can never fit fails with too_many_pixels. 0 for half of \
                the memory of the container or machine.
                """),
        Setting("worker.maximumInFlight", \.worker.consumer.window, .integer(in: 1...100_000))
            .help("Maximum number of jobs in flight per partition."),
        Setting("worker.overflow", \.worker.overflows, .bool)
            .help("Move jobs of tenants that flood a partition to the topic of overflow, out of the way of others."),
        Setting("worker.overflowAfter", \.worker.consumer.spillPatience, .duration(in: .zero ... .seconds(3600)))
            .help(
                """
                Time that jobs may wait behind others of their partition: a full look-ahead whose processing takes \
                longer is moved to the topic of overflow.
                """),
        Setting("worker.lookahead", \.worker.consumer.lookahead, .integer(in: 0...1_000_000))
            .help(
                """
                Maximum number of jobs per partition that a worker has received, in flight or waiting. Only these can \
                be processed before earlier jobs of other tenants. It applies once a job has a tenant.
                """),
        Setting("worker.maximumInFlightBytes", \.worker.consumer.windowBytes, .byteSize(in: 1...(1 << 40)))
            .help("Maximum total size of the received messages per partition; a larger message is processed alone."),
        Setting("worker.rebalanceTimeout", \.worker.consumer.revocationTimeout, .duration())
            .help("Time to finish jobs of revoked partitions during a rebalance; the whole group waits for it."),
        Setting(
            "worker.heartbeatInterval", \.worker.heartbeat.interval,
            .duration(in: .milliseconds(100) ... .seconds(3600))
        )
        .help("Heartbeat interval of the worker registry; a starting worker waits for a heartbeat of all others."),
        Setting("worker.grace", \.worker.grace, .duration()).help("Grace period for finishing jobs on shutdown."),
        Setting("health.stuckAfter", \.worker.health.stuckAfter, .duration(in: .milliseconds(100) ... .seconds(3600)))
            .help("Delay without progress after which a worker counts as stuck."),
        Setting("health.exitAfter", \.worker.health.exitAfter, .zeroAsNil(.duration(in: .zero ... .days(1))))
            .help("Time after which a stuck worker exits, so that its supervisor restarts it; 0 for never."),
        Setting("worker.cancellationRetention", \.worker.cancelMemory, .seconds(in: .seconds(1) ... .days(1)))
            .help("Time for which cancellations of jobs that have not been received yet are retained."),
        Setting("worker.maximumCancellations", \.worker.cancelledJobs, .integer(in: 1...10_000_000))
            .help("Maximum number of retained cancellations; the oldest are dropped first."),
        Setting("events.progressInterval", \.worker.progressInterval, .duration(in: .zero ... .seconds(3600)))
            .help("Interval of progress events while a source is fetched, and delay before the first; 0 for none."),
        Setting("jobs.strict", \.worker.reader.isStrict, .bool)
            .help("Reject jobs with unknown fields. Otherwise they are ignored and listed in the job's event."),
        Setting("worker.maximumJobBytes", \.worker.reader.maximumBytes, .byteSize(in: 64...(64 << 20)))
            .help("Maximum size of a job message."),

        // Delivery and group membership.
        Setting("delivery", \.delivery, .oneOf)
            .help("Delivery guarantee of terminal events: at-least-once, or exactly-once with Kafka transactions."),
        Setting("delivery.linger", \.transactions.linger, .duration(in: .zero ... .seconds(1)))
            .help("Time for which a completed job waits to share a transaction with others; exactly-once only."),
        Setting("delivery.batch", \.transactions.batch, .integer(in: 1...50_000))
            .help("Maximum number of jobs per transaction; exactly-once only."),
        Setting("worker.instance", \.instance, .text)
            .help(
                """
                Unique name of the worker, such as its pod's. A new worker with the same name replaces the old one. \
                Random by default.
                """),
        Setting("worker.staticMember", \.isStaticMember, .bool)
            .help("Static group membership: a named worker keeps its partitions for session.timeout.ms while away."),

        // Retries.
        Setting("retry.attempts", \.worker.retries.attempts, .integer(in: 1...100))
            .help("Maximum number of attempts of a job with transient errors; 1 for no retries."),
        Setting("retry.baseDelay", \.worker.retries.base, .seconds(in: .milliseconds(1) ... .seconds(60)))
            .help(
                "Maximum backoff before the second attempt, doubled with each attempt; the backoff is random from 0."),
        Setting("retry.maximumInProcessDelay", \.worker.retries.inProcess, .seconds(in: .zero ... .seconds(60)))
            .help("Longest backoff that is waited for in the worker; longer ones use a retry topic."),
        Setting("retry.budget", \.worker.retries.budget, .seconds(in: .zero ... .days(1)))
            .help("Time after the first attempt during which a job is retried."),
        Setting(
            "retry.delays", \.worker.topics.retryDelays, .list(of: .duration(in: .milliseconds(10) ... .seconds(3600)))
        )
        .help(
            """
            Delays of the retry topics, which are named after them (retry.10s). They must be the same for all \
            workers. A topic whose delay is removed is no longer read.
            """),

        // Schedules.
        Setting(
            "schedule.delays", \.worker.topics.startDelays,
            .list(of: .duration(in: .milliseconds(100) ... .seconds(3600)))
        )
        .help(
            """
            Delays of the delay topics, in which jobs wait for their start (notBefore), and which are named after them \
            (delay.10s). They must be the same for all workers. The longest one must be shorter than \
            worker.cancellationRetention.
            """),

        Setting("schedule.maximumDelay", \.worker.reader.maximumDelay, .seconds(in: .seconds(1) ... .days(365)))
            .help("Longest time from now until the start of a job (notBefore). Jobs with a later one are refused."),

        Setting("refresh.maximumJobs", \.worker.refresh.maximumJobs, .integer(in: 0...1_000_000))
            .help("Maximum number of jobs in the cluster whose results are refreshed (refresh); 0 to refresh none."),
        Setting("refresh.maximumJobsPerTenant", \.worker.refresh.maximumJobsPerTenant, .integer(in: 1...1_000_000))
            .help("Maximum number of such jobs of one tenant."),
        Setting("refresh.rate", \.worker.refresh.rate, .integer(in: 1...100_000))
            .help("Maximum number of refreshes per second in the cluster. Later ones wait."),
        Setting(
            "refresh.minimumInterval", \.worker.refresh.minimumInterval, .seconds(in: .milliseconds(100) ... .days(1))
        )
        .help("Minimum time between two refreshes of the same results. Results that expire earlier are not refreshed."),
        Setting("refresh.lead", \.worker.refresh.lead, .seconds(in: .seconds(1) ... .seconds(3600)))
            .help(
                """
                Time before the expiry of a result at which it is refreshed, at most a fifth of its lifetime. All \
                workers need the same settings of refreshes.
                """),

        // Leases and priorities.
        Setting("leases.duration", \.worker.leases.duration, .duration(in: .milliseconds(500) ... .seconds(600)))
            .help("Lease duration. Leases are renewed every third of it."),
        Setting("leases.fallbackTimeout", \.worker.leases.fallbackTimeout, .duration(in: .zero ... .seconds(600)))
            .help("Time without a response from Redis after which workers continue without leases."),
        Setting("worker.fetchesWithoutLeases", \.worker.fetchesWithoutLeases, .integer(in: 1...10_000))
            .help(
                "Maximum number of results that are produced concurrently without leases while Redis is unavailable."),
        Setting("poison.crashes", \.worker.leases.deaths.deaths, .integer(in: 2...100))
            .help("Crashes of workers and quarantined render processes after which a job is declared poison."),
        Setting("poison.crashThreshold", \.worker.leases.deaths.coincidences, .integer(in: 2...1000))
            .help("Worker crashes after which a job is declared poison without any other evidence."),
        Setting("batches.retention", \.worker.batches.retention, .seconds(in: .seconds(60) ... .days(365)))
            .help("Time for which a completed batch is stored, and a batch without progress is waited for."),
        Setting("batches.maximumFailures", \.worker.batches.mostFailures, .integer(in: 0...1_000_000))
            .help("Maximum number of failures stored for a batch. All failures are counted and have an event."),
        Setting("batches.progressInterval", \.worker.batches.progressInterval, .duration(in: .zero ... .seconds(3600)))
            .help("Minimum time between two progress events of a batch; 0 for none."),
        Setting(
            "batches.recountAfter", \.worker.batches.recountAfter, .duration(in: .milliseconds(100) ... .seconds(3600))
        )
        .help(
            "Time without progress after which a batch is counted again from the topic of events; it doubles each time."
        ),
        Setting("batches.maximumListed", \.worker.batches.mostListed, .integer(in: 1...10_000_000))
            .help("Maximum number of jobs that a worker lists for a batch."),
        Setting("batches.jobsPerPage", \.worker.batches.jobsPerPage, .integer(in: 1...1000))
            .help("Number of jobs that are listed with one request."),
        Setting("batches.lists", \.worker.batches.lists, .integer(in: 1...1000))
            .help("Maximum number of batches whose jobs are listed at the same time."),
        Setting("batches.listPatience", \.worker.batches.listPatience, .duration(in: .zero ... .seconds(86_400)))
            .help("Time for which a server that does not respond is asked again before a list ends with an error."),
        Setting("rerender.maximumEntries", \.worker.presetIndex.mostEntries, .integer(in: 0...100_000_000))
            .help("Maximum number of jobs of a preset that are remembered for halcyon rerender; 0 for none."),
        Setting("rerender.maximumEntryBytes", \.worker.presetIndex.longestEntry, .byteSize(in: 64...(1 << 20)))
            .help("Maximum size of a job that is remembered for halcyon rerender."),
        share(.high), share(.normal), share(.low),
        Setting(
            "tenants.weights", \.worker.tenants.weights,
            .tenants("weights from 0.001 to 1000, such as acme=4,test=0.5") { text in
                Double(text).flatMap { (0.001...1000).contains($0) ? $0 : nil }
            }
        )
        .help(
            """
            Weights of tenants, such as acme=4,test=0.5, in proportion to which they share the capacity of a lane \
            while several of them wait; 1 for all others.
            """),
        Setting(
            "tenants.maximumInFlight", \.worker.tenants.limits.inFlight,
            .tenants("numbers from 1 to 1000000, such as acme=100,*=500", anyOther: true) { text in
                Int(text).flatMap { (1...1_000_000).contains($0) ? $0 : nil }
            }
        )
        .help(
            """
            Maximum number of jobs in flight in the cluster by tenant; * stands for each tenant without a number of its \
            own. Each worker observes an equal part, and at least one job. None by default.
            """),
        Setting(
            "tenants.rate", \.worker.tenants.limits.rates,
            .tenants("rates from 0.1 to 1000000, such as acme=50,*=200", anyOther: true) { text in
                Double(text).flatMap { (0.1...1_000_000).contains($0) ? $0 : nil }
            }
        )
        .help(
            """
            Maximum number of jobs per second in the cluster by tenant; * stands for each tenant without a rate of its \
            own. Each worker observes an equal part. None by default.
            """),
        Setting("tenants.burst", \.worker.tenants.limits.burst, .seconds(in: .milliseconds(1) ... .seconds(3600)))
            .help("Time whose jobs a tenant with a rate may begin at once, at least one job."),
        Setting("tenants.metrics", \.worker.tenants.metrics, .integer(in: 0...1000))
            .help("Number of the busiest tenants that have metrics of their own in each worker; 0 for none."),
        Setting("tenants.reserve", \.worker.consumer.reserve, .integer(in: 0...1000))
            .help("Number of jobs in flight per tenant and partition that do not wait for worker.maximumInFlight."),
    ]

    private static func share(_ lane: Lane) -> Setting<ProgramOptions> {
        Setting("lanes.\(lane.rawValue)", \.worker.shares[of: lane], .integer(in: 1...1000))
            .help("Weight of this lane in fetching and rendering while jobs of all lanes wait.")
    }
}

extension ValueKind<[String]> {
    /// A program and its arguments, separated by spaces.
    fileprivate static var command: Self {
        ValueKind("a program and its arguments, separated by spaces") { text in
            text.split(separator: " ").map(String.init)
        } write: {
            $0.joined(separator: " ")
        }
    }
}

extension ValueKind<String> {
    /// The name and version of a detector.
    fileprivate static var detectorName: Self {
        ValueKind("1 to 64 letters, digits, dots, hyphens, underscores and slashes") { text in
            let isName = text.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "-")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
            return isName && (1...64).contains(text.utf8.count) ? text : nil
        }
    }
}

extension ValueKind {
    /// A value kind for a value of each of several tenants.
    /// - Parameters:
    ///   - text: The description of the values, after "tenants with".
    ///   - anyOther: True if the name `*` is allowed.
    ///   - parse: A function that parses a value; nil if it is invalid.
    fileprivate static func tenants<Element: CustomStringConvertible & Sendable>(
        _ text: String, anyOther: Bool = false, _ parse: @escaping @Sendable (String) -> Element?
    ) -> Self where Value == [String: Element] {
        ValueKind("tenants with \(text)") { text in
            var values: [String: Element] = [:]
            for entry in text.split(separator: ",") {
                let parts = entry.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " } }
                guard parts.count == 2, Job.isTenant(parts[0]) || anyOther && parts[0] == FlowLimiter.Limits.others,
                    values[parts[0]] == nil, let value = parse(parts[1])
                else { return nil }
                values[parts[0]] = value
            }
            return values
        } write: { values in
            values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: ",")
        }
    }
}

extension [Lane: Int] {
    fileprivate subscript(of lane: Lane) -> Int {
        get { self[lane] ?? 1 }
        set { self[lane] = newValue }
    }
}
