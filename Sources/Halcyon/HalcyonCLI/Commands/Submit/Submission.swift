import Concurrency
import HalcyonCluster
import HalcyonCoding
import JSON
import Kafka
import Redis

/// The submission of a batch: sends its jobs to Kafka and optionally waits for their events.
struct Submission: Sendable {
    let batch: SubmittedJobs
    let kafka: KafkaAccess
    /// The timeout of the whole submission. If nil, sending has a default timeout and waiting has none.
    let timeout: Duration?
    let asJSON: Bool

    private static let sendingTimeout = Duration.seconds(30)
    /// The time without any event after which the user is warned.
    private static let silence = Duration.seconds(10)

    // MARK: Without waiting

    /// Sends the jobs and prints their ids.
    func send() async throws -> ExitCode {
        let limit = timeout ?? Self.sendingTimeout
        let deadline = ContinuousClock.now + limit
        try await connect(until: deadline)
        let deliveries = try await kafka.withProducer(limit: deadline - .now) { producer in
            await BatchSender(batch: batch, topics: kafka.topics, producer: producer).run()
        }
        try Task.checkCancellation()
        for (prepared, delivery) in zip(batch.jobs, deliveries) {
            guard let delivery else { continue }
            if asJSON { Console.print(json: json(prepared, delivery)) } else { Console.print(prepared.job.id) }
        }
        let errors = batch.outcomes.compactMap { outcome in
            if case .notSent(let error) = outcome { error } else { nil }
        }
        guard let first = errors.first else { return .done }
        Console.complain("\(counted(errors.count, "job")) not submitted: \(first)")
        return .failed
    }

    private func json(_ prepared: ValidatedJob, _ delivery: Delivery) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("id", prepared.job.id)
            writer.member("source", prepared.job.source.text)
            writer.member("key", prepared.keys.first?.description)
            writer.member("keys", prepared.keys.map(\.description))
            writer.member("topic", kafka.topics.jobs(prepared.lane))
            writer.member("partition", Int(delivery.partition))
            writer.member("offset", delivery.offset)
            writer.member("warnings", prepared.warnings.isEmpty ? nil : prepared.warnings)
        }
    }

    // MARK: Waiting

    /// Sends the jobs, waits until they have ended and prints a report.
    func wait(writingTo output: OutputDirectory?) async throws -> ExitCode {
        let start = ContinuousClock.now
        let deadline = timeout.map { start + $0 }
        let metadata = try await connect(until: deadline ?? start + Self.sendingTimeout)
        // Reading starts before the first job is sent, so that no event is missed.
        let reader = try await TopicReader.open(
            kafka.topics.events, from: .end, properties: kafka.properties.reader, events: kafka.notices)
        let bar = ProgressBar()
        // Retry topics only add explanations for slow jobs. Without them waiting works as well.
        var retries: [TopicReader] = []
        for topic in kafka.topics.retries where metadata.topics[topic] != nil {
            if let reader = try? await TopicReader.open(topic, from: .end, properties: kafka.properties.reader) {
                retries.append(reader)
            }
        }
        try await closing {
            bar.clear()
            for reader in [reader] + retries { await reader.close() }
        } after: { [retries] in
            try await exchange(reader, retries, output, bar, from: start, until: deadline)
        }

        let (ended, failures) = batch.counts
        if Task.isCancelled {
            Console.complain("interrupted; submitted jobs continue")
        }
        OutcomeReport(batch: batch, unfinished: unfinished).print(asJSON: asJSON)
        if Task.isCancelled { return .interrupted }
        return failures == 0 && ended == batch.jobs.count ? .done : .failed
    }

    private var unfinished: String {
        if Task.isCancelled { return "no longer waited for" }
        return "not finished within \(timeout.map { spanText(milliseconds: $0.milliseconds) } ?? "the timeout")"
    }

    /// Sends jobs and follows their events concurrently until all jobs have ended, the deadline passes or the task is
    /// cancelled.
    private func exchange(
        _ reader: TopicReader, _ retries: [TopicReader], _ output: OutputDirectory?, _ bar: ProgressBar,
        from start: ContinuousClock.Instant, until deadline: ContinuousClock.Instant?
    ) async throws {
        try await kafka.withProducer(limit: deadline.map { $0 - .now } ?? Self.sendingTimeout) { producer in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await ResultWatcher(batch: batch, reader: reader, output: output).run() }
                let notices = RetryNotices(batch, over: bar)
                for reader in retries { group.addTask { await notices.follow(reader) } }
                group.addTask { await show(bar, from: start) }
                group.addTask {
                    await BatchSender(batch: batch, topics: kafka.topics, producer: producer).run()
                    await batch.completed()
                    throw Over()
                }
                if let deadline {
                    group.addTask {
                        try await Task.sleep(until: deadline, clock: .continuous)
                        throw Over()
                    }
                }
                defer { group.cancelAll() }
                // Not waitForAll(), which keeps waiting after a task has thrown.
                do { while try await group.next() != nil {} } catch is Over {} catch is CancellationError {}
            }
        }
    }

    /// Thrown to end the task group when there is nothing left to wait for.
    private struct Over: Error {}

    private func show(_ bar: ProgressBar, from start: ContinuousClock.Instant) async {
        var isSilenceTold = false
        while !Task.isCancelled {
            let elapsed = start.duration(to: .now)
            if !isSilenceTold, elapsed >= Self.silence, !batch.hasBeenHeardOf {
                bar.clear()
                Console.complain(
                    "no events for these jobs within \(Self.silence / .seconds(1)) s; no worker is running, or all "
                        + "workers are busy. Run `halcyon doctor` for details")
                isSilenceTold = true
            }
            let (ended, failures) = batch.counts
            bar.show(ended: ended, of: batch.jobs.count, failures: failures, elapsed: elapsed)
            await Task.sleepUnlessCancelled(for: .milliseconds(200))
        }
    }

    // MARK: Kafka

    @discardableResult
    private func connect(until deadline: ContinuousClock.Instant) async throws -> ClusterMetadata {
        let metadata = try await kafka.metadata(until: deadline)
        try kafka.require(
            Set(batch.jobs.map { kafka.topics.jobs($0.lane) }).sorted() + [kafka.topics.events], in: metadata)
        return metadata
    }
}

/// Records the outcomes of a batch's jobs from their events, and writes the images to a folder if requested.
struct ResultWatcher: Sendable {
    let batch: SubmittedJobs
    let reader: TopicReader
    /// The folder for the images, or nil if they are not written.
    let output: OutputDirectory?

    /// Reads events until the task is cancelled.
    /// - Throws: ``KafkaError`` for an error that is not retriable.
    func run() async throws(KafkaError) {
        var records = reader.makeAsyncIterator()
        while let record = try await records.next() {
            guard let key = record.key, let index = batch.index(ofKey: key), let value = record.value,
                let event = DecodedEvent(json: value), let ending = event.ending
            else { continue }
            switch ending {
            case .failed(let code, let message): batch.end(index, .failed(code: code, message: message))
            case .cancelled: batch.end(index, .cancelled)
            case .superseded(let generation): batch.end(index, .superseded(by: generation))
            case .ready(let outputs, let failures):
                batch.end(index, await outcome(index, outputs, failures, event))
            }
        }
    }

    private func outcome(
        _ index: Int, _ outputs: [DecodedEvent.Output], _ failures: [DecodedEvent.VariantFailure],
        _ event: DecodedEvent
    ) async -> SubmittedJobs.Outcome {
        do {
            let files = try await output?.write(outputs, ofJob: index)
            return .ready(
                outputs, failures: failures, fallback: event.fallback, milliseconds: event.total, files: files)
        } catch {
            return .notWritten(outputs, reason: "\(error)")
        }
    }
}

/// The folder for finished images.
struct OutputDirectory: Sendable {
    let folder: String
    let results: ResultCache
    /// A unique file name stem for each job.
    let stems: [String]

    /// Writes the images of one job, from the event if it contains them, otherwise from Redis.
    /// - Returns: the paths of the files, in the order of the variants.
    /// - Throws: ``RedisError``, ``FileError``, ``CommandError``.
    func write(_ outputs: [DecodedEvent.Output], ofJob index: Int) async throws -> [String] {
        var images: [FileNames.Image] = []
        for output in outputs {
            guard let bytes = try await bytes(of: output) else {
                throw CommandError("the result is no longer in Redis")
            }
            images.append(
                FileNames.Image(bytes: bytes, width: output.width, height: output.height, format: output.format))
        }
        let paths = FileNames.names(of: images, stem: stems[index]).map { "\(folder)/\($0)" }
        for (image, path) in zip(images, paths) { try await Files.write(image.bytes, to: path) }
        return paths
    }

    private func bytes(of output: DecodedEvent.Output) async throws -> [UInt8]? {
        if let data = output.data { return data }
        return try await results.read(output.key)?.body
    }
}

/// Sends the jobs of a batch to the topics of their lanes.
struct BatchSender: Sendable {
    let batch: SubmittedJobs
    let topics: Topics
    let producer: Producer

    /// The maximum number of jobs in flight, enough for librdkafka to fill its requests.
    private static let window = 1000

    /// Sends all jobs and waits until the brokers have acknowledged them. A job that cannot be sent ends as `notSent`.
    /// If the task is cancelled, the producer is closed and unacknowledged jobs are dropped.
    /// - Returns: the coordinates of each job in the order of the jobs, with nil for a job that was not sent.
    @discardableResult
    func run() async -> [Delivery?] {
        await withTaskCancellationHandler {
            await sendAll()
        } onCancel: {
            Task { await producer.close(flushingFor: .zero) }
        }
    }

    private func sendAll() async -> [Delivery?] {
        await withTaskGroup(of: (Int, Delivery?).self) { group in
            var deliveries = [Delivery?](repeating: nil, count: batch.jobs.count)
            for index in batch.jobs.indices {
                if index >= Self.window, let (index, delivery) = await group.next() { deliveries[index] = delivery }
                if Task.isCancelled { break }
                group.addTask { (index, await send(index)) }
            }
            for await (index, delivery) in group { deliveries[index] = delivery }
            return deliveries
        }
    }

    private func send(_ index: Int) async -> Delivery? {
        do throws(KafkaError) {
            let record = topics.record(of: batch.jobs[index])
            let delivery = try await producer.send(record)
            batch.sent(index, to: "\(record.topic)-\(delivery.partition)-\(delivery.offset)")
            return delivery
        } catch {
            batch.end(index, .notSent(error))
            return nil
        }
    }
}
