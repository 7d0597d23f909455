import Digests
import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonWire
import JSON
import Kafka

/// Takes jobs: each is read as workers will read it, and who gave it is told that it is taken when Kafka has it.
struct JobDesk: Sendable {
    let producer: Producer
    let topics: Topics
    let reader: JobReader
    let memory: JobMemory
    /// How long a request may take, and how long the brokers.
    let times: (request: Duration, send: Duration)

    /// Between the latest moment at which a job is given up and that at which its request is: librdkafka looks once a second
    /// what has taken too long.
    static let margin = Duration.seconds(5)

    /// Reads a job. One without an id gets one, which nobody else has.
    /// - Throws: ``Problem``, of the kind `invalidJob`.
    func prepare(_ json: [UInt8]) throws(Problem) -> PreparedJob {
        let draft: JobDraft
        do throws(JSONError) {
            draft = try JobDraft(json: json, maximumSize: reader.maximumBytes)
        } catch {
            throw Problem(.invalidJob, "the job: \(error)", code: FailureCode.invalidJob.rawValue)
        }
        return try prepare(draft, naming: "http")
    }

    /// The same of a draft. The id of one that has none begins with `kind`.
    func prepare(_ draft: JobDraft, naming kind: String) throws(Problem) -> PreparedJob {
        var draft = draft
        if draft["id"] == nil { draft.set("id", "\(kind)-\(String.randomHexadecimal())") }
        do throws(JobRefusal) {
            return try PreparedJob(draft, fallbackID: "", by: reader)
        } catch {
            throw Problem(.invalidJob, error.failure.message, code: error.failure.code.rawValue)
        }
    }

    /// After that a job of this request is not handed to Kafka any more, for the request may be given up before it is known what
    /// becomes of it: what was answered 503 must not be sent later.
    func latest(for call: Call) -> ContinuousClock.Instant { call.began + times.request - times.send - Self.margin }

    /// Has a job remembered and puts it on its lane, and returns when the brokers have it.
    /// - Parameter latest: after that it is not sent any more.
    /// - Throws: ``Problem``: its id is of a job that came by another key; or Kafka does not take it, and will not have it.
    func submit(
        _ prepared: PreparedJob, for caller: Caller, traceparent: String?, by latest: ContinuousClock.Instant? = nil
    ) async throws(Problem) {
        if let name = caller.name { try await memory.claim(prepared.job.id, for: name) }
        // Before the job is there: its events come after this.
        await memory.note(accepted: prepared.job.id)
        do throws(Problem) {
            try await send(prepared, traceparent: traceparent, by: latest)
        } catch {
            await memory.forget(prepared.job.id)
            throw error
        }
    }

    /// The same of a job whose id nobody is told, and whose state nobody can ask for.
    /// - Parameter patience: how long its sender waits for its end, where nobody else will.
    func send(
        _ prepared: PreparedJob, traceparent: String?, by latest: ContinuousClock.Instant? = nil,
        patience: Patience? = nil
    ) async throws(Problem) {
        let trace = traceparent.map { RecordHeader("traceparent", Array($0.utf8)) }
        let headers = [trace, patience?.header].compactMap(\.self)
        do throws(KafkaError) {
            _ = try await producer.send(topics.record(of: prepared, headers: headers), by: latest)
        } catch {
            throw Self.problem(error)
        }
    }

    private static func problem(_ error: KafkaError) -> Problem {
        error.code == .messageTooLarge
            ? Problem(.tooLarge, "the job is larger than the brokers take")
            : Problem(.unavailable, "the job cannot be put on its queue now; submit it again", retryAfter: 5)
    }
}

/// What the submitter of a job is told of it.
struct AcceptedJob: JSONWritable {
    private let prepared: PreparedJob

    init(_ prepared: PreparedJob) { self.prepared = prepared }

    /// Where its state is asked for.
    var location: String { "/v1/jobs/\(PercentEncoding.encode(pathSegment: prepared.job.id))" }

    func write(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

    /// Its members: what it is called, which lane it goes down, and where its images will be.
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
    /// Returns one segment of a path: colons may stand there as they are.
    static func encode(pathSegment text: String) -> String { encode(text, keeping: ":") }
}
