import Concurrency
import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import Hashing
import JSON
import Kafka

/// Submits jobs: validates them as workers do and publishes them to Kafka. A job is accepted when Kafka has
/// acknowledged it.
struct JobSubmitter: Sendable {
    let producer: Producer
    let topics: Topics
    let reader: JobDecoder
    let presets: PresetCatalog
    let memory: JobStateStore
    let batches: BatchStore
    /// The timeout of a request, and the time limit for publishing to Kafka.
    let times: (request: Duration, send: Duration)
    /// The keys with batches that they may have begun while Redis was down. The message is published once.
    private let begun = Lock(LRUCache<String, Bool>(capacity: 10_000))

    /// The minimum time between the expiry of a job's send and the timeout of its request. librdkafka checks for
    /// expired messages only once a second.
    static let margin = Duration.seconds(5)

    /// Parses and validates a job. A job without an id receives a random one.
    /// - Throws: ``Problem`` of the kind `invalidJob`.
    func prepare(_ json: [UInt8]) async throws(Problem) -> ValidatedJob {
        let draft: JobBuilder
        do throws(JSONError) {
            draft = try JobBuilder(json: json, maximumSize: reader.maximumBytes)
        } catch {
            throw Problem(.invalidJob, "invalid job: \(error)", code: JobErrorCode.invalidJob.rawValue)
        }
        return try await prepare(draft, naming: "http")
    }

    /// Validates a job. A job without an id receives a random one that starts with `kind`. If its preset is unknown,
    /// the presets are loaded first.
    func prepare(_ draft: JobBuilder, naming kind: String) async throws(Problem) -> ValidatedJob {
        var draft = draft
        if draft["id"] == nil { draft.set("id", "\(kind)-\(String.randomHexadecimal())") }
        do throws(InvalidJobError) {
            return try ValidatedJob(draft, fallbackID: "", by: reader)
        } catch {
            guard error.missingPreset != nil else { throw Problem(invalid: error) }
            try await presets.reloadForRequest()
        }
        do throws(InvalidJobError) {
            return try ValidatedJob(draft, fallbackID: "", by: reader)
        } catch {
            throw Problem(invalid: error)
        }
    }

    /// Returns the time after which a job of this request must not be published any more. The request could time out
    /// before the outcome is known, and a job that was answered with 503 must not be sent later.
    func latest(for call: RequestContext) -> ContinuousClock.Instant {
        call.began + times.request - times.send - Self.margin
    }

    /// Stores the state of a job, publishes the job to its lane and waits for Kafka's acknowledgement. All of this is
    /// completed even if the client has disconnected.
    /// - Parameter latest: the time after which it is not sent any more.
    /// - Throws: ``Problem`` if the id belongs to a job of another key, the caller may not add jobs to the batch of the
    ///   job, or Kafka did not accept the job and never will.
    func submit(
        _ prepared: ValidatedJob, for caller: Principal, traceparent: String?, by latest: ContinuousClock.Instant? = nil
    ) async throws(Problem) {
        let id = prepared.job.id
        try await withCancellationShield { () async throws(Problem) -> Void in
            if let name = caller.name {
                if let batch = prepared.job.batch?.batch { try await join(batch, name, caller) }
                try await memory.claim(id, for: name)
            }
            // Stored before the job is published, because its events must come later.
            let earlier = await memory.note(accepted: id)
            do throws(Problem) {
                try await send(prepared, for: caller.name, traceparent: traceparent, by: latest)
            } catch {
                await memory.withdraw(id, after: earlier)
                throw error
            }
            await memory.confirm(id, after: earlier)
        }
    }

    /// Checks that the caller with the key of this name may add jobs to a batch. If the batch is not known, creates it
    /// for the key.
    private func join(_ id: String, _ name: String, _ caller: Principal) async throws(Problem) {
        let new = Batch(id: id, owner: name, created: Timestamp.now.milliseconds)
        // If Redis is down, the batch may be new. The first message about it names its owner.
        let found = try? await batches.announce(new)
        let pair = "\(name)\n\(id)"
        if found?.isNew ?? begun.withLock({ $0.peek(pair) == nil }) {
            let writer = BatchWriter(id, producer, topics: topics, reader: reader)
            do throws(KafkaError) {
                try await writer.open(created: new.created, owner: name)
            } catch {
                throw Self.problem(error)
            }
            if found == nil { begun.withLock { _ = $0.insert(true, for: pair, cost: 1) } }
        }
        guard let found, !caller.mayAdminister else { return }
        guard let batch = found.batch else { throw Problem.unknownOwner }
        guard batch.owner == name else {
            throw Problem(
                .conflict,
                "the batch of this job was created \(batch.creation); adding jobs to it needs the scope admin")
        }
    }

    /// Publishes a job without storing its state.
    /// - Parameters:
    ///   - owner: the name of the key that may cancel the job; nil if its id is not returned to the client.
    ///   - waitTimeout: the time that the client waits for the result, if no other client needs it.
    func send(
        _ prepared: ValidatedJob, for owner: String? = nil, traceparent: String?,
        by latest: ContinuousClock.Instant? = nil, waitTimeout: WaitTimeout? = nil
    ) async throws(Problem) {
        let trace = traceparent.map { RecordHeader("traceparent", Array($0.utf8)) }
        let key = owner.map { RecordHeader(OwnerHeader.name, $0) }
        let headers = [trace, key, waitTimeout?.header].compactMap(\.self)
        do throws(KafkaError) {
            _ = try await producer.send(topics.record(of: prepared, headers: headers), by: latest)
        } catch {
            throw Self.problem(error)
        }
    }

    private static func problem(_ error: KafkaError) -> Problem {
        error.code == .messageTooLarge
            ? Problem(.tooLarge, "the job exceeds the maximum message size of the Kafka brokers")
            : Problem(.unavailable, "the job cannot be published to Kafka now; submit it again", retryAfter: 5)
    }
}

extension Batch {
    /// The way in which the batch was created, for callers that do not own it.
    var creation: String { owner == nil ? "through Kafka or the command line" : "by another key" }
}

extension Problem {
    /// The problem of a batch whose counts are known, but not its owner.
    static let unknownOwner = Problem(
        .unavailable, "the owner of the batch is not known at the moment; try again", retryAfter: 2)

    /// Creates the problem of an invalid job.
    init(invalid error: InvalidJobError) {
        self.init(.invalidJob, error.failure.message, code: error.failure.code.rawValue)
    }
}

/// The response to a submitted job.
struct AcceptedJob: JSONWritable {
    private let prepared: ValidatedJob

    init(_ prepared: ValidatedJob) { self.prepared = prepared }

    /// The path of the job's state.
    var location: String { "/v1/jobs/\(PercentEncoding.encode(pathSegment: prepared.job.id))" }

    func write(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

    /// Writes the members: the job's id and lane, and the paths of its state and images.
    func writeMembers(to writer: inout JSONWriter) {
        writer.member("id", prepared.job.id)
        writer.member("lane", prepared.lane.rawValue)
        writer.member("status", location)
        writer.name("images")
        writer.array { writer in
            for key in prepared.keys {
                writer.value("/v1/images/\(PercentEncoding.encode(pathSegment: key.description))")
            }
        }
        if !prepared.unknownFields.isEmpty {
            writer.name("unknownFields")
            writer.array { writer in
                for name in prepared.unknownFields { writer.value(name) }
            }
        }
    }
}

extension PercentEncoding {
    /// Encodes one segment of a path. Colons are not escaped.
    static func encode(pathSegment text: String) -> String { encode(text, keeping: ":") }
}
