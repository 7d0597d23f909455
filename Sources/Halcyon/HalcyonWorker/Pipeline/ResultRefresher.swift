import Concurrency
import Formats
import HalcyonCluster
import HalcyonModel
import Kafka
import Redis
import Telemetry

/// Keeps results of jobs with the field `refresh` warm: renders them again before they expire, or at an interval, while
/// jobs ask for them.
///
/// A refresh is a job of its own in the lane `low`, which reloads the source. Its retries, limits and metrics are those
/// of any job.
struct ResultRefresher: Sendable {
    let store: RefreshStore
    let options: RefreshOptions
    let results: ResultCache
    let decoder: DecodeStage
    let producer: Producer
    let topics: Topics
    let metrics: RefreshMetrics
    let log: Log
    /// The log and counter of Redis errors. Results that are not refreshed expire.
    let errors: ToleratedErrors

    /// The maximum number of jobs that are claimed at once.
    private static let most = 100

    /// Plans the next refresh before the event of a job is published, so that its results have been asked for when
    /// readers see the event. A job whose event could not be published is repeated, and plans the same again.
    func ending(_ job: JobContext, _ record: ConsumedRecord, _ outcome: Outcome) async {
        guard let rule = job.job.refresh, options.maximumJobs > 0 else { return }
        switch outcome {
        case .ended(.ready(let ready)):
            await errors.tolerating { try await plan(rule, job, record, ready) }
        case .ended, .gaveUp:
            // The results stay until they expire. The next job that asks for them starts again.
            if let id = job.refreshID { await errors.tolerating { try await store.remove(id) } }
        case .postponed, .scheduled, .handedBack: break
        }
    }

    private func plan(
        _ rule: Job.Refresh, _ job: JobContext, _ record: ConsumedRecord, _ ready: Ready
    ) async throws(RedisError) {
        let isOwnImage = ready.fallback == nil && ready.alternative == nil
        let due = isOwnImage ? self.due(rule, ready.expiresAt) : nil
        if let id = job.refreshID {
            guard let due else { return try await store.remove(id) }
            return try await store.schedule(id, due: due)
        }
        let id = RefreshStore.id(of: job.keys)
        let isHit = ready.origin == .memory || ready.origin == .store
        if isHit, try await store.ask(for: id) { return }
        guard let due, let message = record.value, message.count <= RefreshOptions.maximumBytes else { return }
        guard try await store.add(id, due: due, message, of: job.job.tenant) else {
            return metrics.count(.overBudget)
        }
    }

    private func due(_ rule: Job.Refresh, _ expiresAt: Double?) -> Int64? {
        guard let expiresAt else { return nil }
        return options.due(rule, expiresAt: expiresAt, now: Timestamp.now.seconds)
    }

    /// Submits jobs that are due until the task is cancelled.
    func run() async {
        guard options.maximumJobs > 0 else { return }
        while await Task.sleepUnlessCancelled(for: options.interval) {
            let claim = await errors.tolerating {
                try await store.claim(at: Timestamp.now.milliseconds, most: Self.most)
            }
            guard let claim else { continue }
            metrics.count(.notAskedFor, claim.forgotten)
            for entry in claim.entries { await errors.tolerating { try await refresh(entry) } }
        }
    }

    /// Submits a job, unless its results are gone or somebody else has rendered them again.
    private func refresh(_ entry: RefreshStore.Entry) async throws(RedisError) {
        let record = ConsumedRecord(
            topic: topics.jobs(.low), partition: 0, offset: 0, timestamp: Timestamp.now.milliseconds,
            value: entry.message)
        // A preset that the job names may have been deleted.
        guard let job = try? decoder.decode(record), let rule = job.job.refresh else {
            metrics.count(.expired)
            return try await store.remove(entry.id)
        }
        let found = try await results.find(job.keys.map(\.description))
        guard !found.contains(where: { $0 == nil }) else {
            metrics.count(.expired)
            return try await store.remove(entry.id)
        }
        if rule == .beforeExpiry, let first = found.compactMap({ $0?.expiresAt }).min(), let due = due(rule, first) {
            return try await store.schedule(entry.id, due: due, asked: true)
        }
        do throws(KafkaError) {
            try await producer.send(
                ProducerRecord(
                    topic: record.topic, key: Array(job.job.source.text.utf8), value: entry.message,
                    headers: [RecordHeader(RefreshHeader.name, entry.id)]))
            metrics.count(.submitted)
        } catch {
            log.warning("refresh not submitted", ["source": job.job.source.shownText, "error": "\(error)"])
        }
    }
}

/// The counters of refreshes.
struct RefreshMetrics: Sendable {
    /// What became of a result that was to be refreshed.
    enum Outcome: String, CaseIterable {
        /// A job was submitted.
        case submitted
        /// No job asked for it since the last refresh.
        case notAskedFor = "not_asked_for"
        /// It had expired, or was purged or evicted, before its refresh.
        case expired
        /// It is not refreshed, because too many others are.
        case overBudget = "over_budget"
    }

    private let counters: [Outcome: Counter]

    init(_ metrics: Metrics) {
        counters = Dictionary(
            uniqueKeysWithValues: Outcome.allCases.map { outcome in
                (
                    outcome,
                    metrics.counter(
                        "halcyon_refreshes_total",
                        help: "Results that were to be refreshed, by what became of them.",
                        labels: ["outcome": outcome.rawValue])
                )
            })
    }

    func count(_ outcome: Outcome, _ count: Int = 1) { if count > 0 { counters[outcome]?.add(count) } }
}
