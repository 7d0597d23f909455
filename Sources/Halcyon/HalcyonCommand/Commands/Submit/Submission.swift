import HalcyonCluster
import HalcyonWire
import JSON
import Kafka
import Redis
import Threads

/// Jobs that have been read, on their way: to Kafka, and back as events.
struct Submission: Sendable {
    let batch: Batch
    let kafka: KafkaAccess
    /// For all of it; nil for a sensible end of sending and no end of waiting.
    let timeout: Duration?
    let asJSON: Bool

    private static let sendingTimeout = Duration.seconds(30)
    /// How long nothing may be heard before it is said that nothing is heard.
    private static let silence = Duration.seconds(10)

    // MARK: Without waiting

    /// Sends the jobs and prints their ids.
    func send() async throws -> ExitCode {
        let limit = timeout ?? Self.sendingTimeout
        let deadline = ContinuousClock.now + limit
        try await connect(until: deadline)
        let deliveries = try await kafka.withProducer(limit: deadline - .now) { producer in
            await Sending(batch: batch, topics: kafka.topics, producer: producer).run()
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

    private func json(_ prepared: PreparedJob, _ delivery: Delivery) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("id", prepared.job.id)
            writer.member("source", prepared.job.source.text)
            writer.member("key", prepared.keys[0].description)
            writer.member("keys", prepared.keys.map(\.description))
            writer.member("topic", kafka.topics.jobs(prepared.lane))
            writer.member("partition", Int(delivery.partition))
            writer.member("offset", delivery.offset)
            writer.member("warnings", prepared.warnings.isEmpty ? nil : prepared.warnings)
        }
    }

    // MARK: Waiting

    /// Sends the jobs, waits until they have ended, and prints a line for each.
    func wait(writingTo gallery: Gallery?) async throws -> ExitCode {
        let start = ContinuousClock.now
        let deadline = timeout.map { start + $0 }
        let metadata = try await connect(until: deadline ?? start + Self.sendingTimeout)
        // Reading begins before anything is sent: no event is missed.
        let reader = try await TopicReader.open(
            kafka.topics.events, from: .end, properties: kafka.properties.reader, events: kafka.notices)
        let bar = ProgressBar()
        // Without them it is not known why a job takes its time, and that is all.
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
            try await exchange(reader, retries, gallery, bar, from: start, until: deadline)
        }

        let (ended, failures) = batch.counts
        if Task.isCancelled {
            Console.complain("interrupted; jobs that were submitted go on without being waited for")
        }
        OutcomeReport(batch: batch, unfinished: unfinished).print(asJSON: asJSON)
        if Task.isCancelled { return .interrupted }
        return failures == 0 && ended == batch.jobs.count ? .done : .failed
    }

    private var unfinished: String {
        if Task.isCancelled { return "not waited for any more" }
        return "no end within \(timeout.map { spanText(milliseconds: $0.milliseconds) } ?? "the time")"
    }

    /// Sending, listening and the clock side by side, until all jobs have ended, the time is over, or the task is
    /// cancelled.
    private func exchange(
        _ reader: TopicReader, _ retries: [TopicReader], _ gallery: Gallery?, _ bar: ProgressBar,
        from start: ContinuousClock.Instant, until deadline: ContinuousClock.Instant?
    ) async throws {
        try await kafka.withProducer(limit: deadline.map { $0 - .now } ?? Self.sendingTimeout) { producer in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await Listening(batch: batch, reader: reader, gallery: gallery).run() }
                let notices = RetryNotices(batch, over: bar)
                for reader in retries { group.addTask { await notices.follow(reader) } }
                group.addTask { await show(bar, from: start) }
                group.addTask {
                    await Sending(batch: batch, topics: kafka.topics, producer: producer).run()
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
                // Not waitForAll(), which waits on after one has thrown.
                do { while try await group.next() != nil {} } catch is Over {} catch is CancellationError {}
            }
        }
    }

    /// There is nothing more to wait for.
    private struct Over: Error {}

    private func show(_ bar: ProgressBar, from start: ContinuousClock.Instant) async {
        var isSilenceTold = false
        while !Task.isCancelled {
            let elapsed = start.duration(to: .now)
            if !isSilenceTold, elapsed >= Self.silence, !batch.hasBeenHeardOf {
                bar.clear()
                Console.complain(
                    "nothing heard of these jobs for \(Self.silence / .seconds(1)) s: no worker runs, or all are busy; "
                        + "`halcyon doctor` tells")
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

/// Hears from the events how the jobs of a batch end, and writes their images into a folder if that is wanted.
struct Listening: Sendable {
    let batch: Batch
    let reader: TopicReader
    /// Where images are written and read from; nil when they are not wanted.
    let gallery: Gallery?

    /// Goes on until the task is cancelled.
    /// - Throws: ``KafkaError`` for what does not mend by itself.
    func run() async throws(KafkaError) {
        var records = reader.makeAsyncIterator()
        while let record = try await records.next() {
            guard let key = record.key, let index = batch.index(ofKey: key), let value = record.value,
                let event = EventView(json: value), let ending = event.ending
            else { continue }
            switch ending {
            case .failed(let code, let message): batch.end(index, .failed(code: code, message: message))
            case .cancelled: batch.end(index, .cancelled)
            case .superseded(let generation): batch.end(index, .superseded(by: generation))
            case .ready(let outputs, let failures):
                batch.end(index, await outcome(index, outputs, failures, event.total))
            }
        }
    }

    private func outcome(
        _ index: Int, _ outputs: [EventView.Output], _ failures: [EventView.VariantFailure], _ milliseconds: Double?
    ) async -> Batch.Outcome {
        do {
            let files = try await gallery?.write(outputs, ofJob: index)
            return .ready(outputs, failures: failures, milliseconds: milliseconds, files: files)
        } catch {
            return .notWritten(outputs, reason: "\(error)")
        }
    }
}

/// A folder of images that are ready.
struct Gallery: Sendable {
    let folder: String
    let results: ResultTier
    /// What the names of each job's files begin with, no two alike.
    let stems: [String]

    /// Writes the images of one job, from the event if they are in it, else from Redis.
    /// - Returns: the files' paths, in the order of the variants.
    /// - Throws: ``RedisError``, ``FileError``, ``Trouble``.
    func write(_ outputs: [EventView.Output], ofJob index: Int) async throws -> [String] {
        var images: [FileNames.Image] = []
        for output in outputs {
            guard let bytes = try await bytes(of: output) else {
                throw Trouble("the result has gone from Redis already")
            }
            images.append(
                FileNames.Image(bytes: bytes, width: output.width, height: output.height, format: output.format))
        }
        let paths = FileNames.names(of: images, stem: stems[index]).map { "\(folder)/\($0)" }
        for (image, path) in zip(images, paths) { try await Files.write(image.bytes, to: path) }
        return paths
    }

    private func bytes(of output: EventView.Output) async throws -> [UInt8]? {
        if let data = output.data { return data }
        return try await results.read(output.key)?.body
    }
}

/// Puts the jobs of a batch on their lanes.
struct Sending: Sendable {
    let batch: Batch
    let topics: Topics
    let producer: Producer

    /// Jobs on their way at once: enough for librdkafka to fill its requests.
    private static let window = 1000

    /// Sends all, and waits until the brokers have them. One that cannot be sent ends as `notSent`. When the task is
    /// cancelled the producer is closed, and what no broker has yet is given up.
    /// - Returns: where each came to lie, in the order of the jobs; nil for one that was not sent.
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
