import Foundation

extension HalcyonClient {
    /// Submits a job. It has been written to the brokers when this returns; its end is reported by an event. The key
    /// needs the scope `submit`.
    ///
    /// A request that has been sent is completed even if the task is cancelled.
    /// - Throws: `HalcyonError`; `CancellationError`.
    @discardableResult
    public func submit(_ job: ImageJob) async throws -> AcceptedJob {
        var request = Request(method: "POST", path: ["jobs"], fields: ["Content-Type": "application/json"])
        request.body = try Self.encode(job)
        return try Self.decode(AcceptedJob.self, try await transport.send(request, completesWhenCancelled: true))
    }

    /// Submits many jobs in one request.
    /// - Returns: The result for each job, in the same order.
    /// - Throws: `HalcyonError` if the gateway refused the whole request; `CancellationError`.
    public func submit(_ jobs: [ImageJob]) async throws -> [Result<AcceptedJob, HalcyonError>] {
        guard !jobs.isEmpty else { return [] }
        var request = Request(method: "POST", path: ["jobs"], fields: ["Content-Type": "application/x-ndjson"])
        request.body = try jobs.reduce(into: Data()) { $0 += try Self.encode($1) + [10] }
        let lines = try await transport.send(request, completesWhenCancelled: true).split(separator: 10)
        guard lines.count == jobs.count else {
            throw HalcyonError.invalidResponse("\(lines.count) results for \(jobs.count) jobs")
        }
        struct Refusal: Decodable { let problem: JSONValue }
        return try lines.map { line in
            // An item that is not a refusal was accepted.
            if let refusal = try? JSONDecoder().decode(Refusal.self, from: line) {
                let problem = try JSONEncoder().encode(refusal.problem)
                return .failure(.problem(ProblemDetails(status: nil, body: problem)))
            }
            return .success(try Self.decode(AcceptedJob.self, line))
        }
    }

    /// The state of a job. The key needs the scope `read`.
    /// - Parameters:
    ///   - id: The job's ``AcceptedJob/id``.
    ///   - timeout: The time to wait for the job's end. The gateway may respond earlier.
    /// - Throws: `HalcyonError`, such as a problem of the kind `notFound`; `CancellationError`.
    public func jobState(id: String, timeout: Duration = .zero) async throws -> JobState {
        var request = Request(path: ["jobs", id])
        if timeout > .zero {
            request.kind = .longPoll
            request.query = [("wait", min(timeout, configuration.longPollInterval).secondsText)]
        }
        return try Self.decode(JobState.self, try await transport.send(request))
    }

    /// Cancels a job. The job's event tells whether that was in time. The key needs the scope `submit`.
    /// - Throws: `HalcyonError`, of the kind `conflict` if the job has already ended; `CancellationError`.
    public func cancelJob(id: String) async throws {
        _ = try await transport.send(Request(method: "DELETE", path: ["jobs", id]), completesWhenCancelled: true)
    }

    /// Encodes a job with an id, so that it can be sent again.
    private static func encode(_ job: ImageJob) throws -> Data {
        var job = job
        job.id = job.id ?? newID()
        return try JSONEncoder().encode(job)
    }

    static func newID() -> String { UUID().uuidString.lowercased() }

    static func decode<Value: Decodable>(_ type: Value.Type, _ body: Data) throws -> Value {
        do { return try JSONDecoder().decode(type, from: body) } catch {
            throw HalcyonError.invalidResponse(String(decoding: body.prefix(200), as: UTF8.self))
        }
    }
}

/// A job that a gateway has accepted and written to the brokers.
public struct AcceptedJob: Sendable, Hashable, Decodable {
    /// The job's id.
    public let id: String
    /// The lane of the job.
    public let lane: ImageJob.Priority
    /// The keys of the images that the job makes, in the order of its variants.
    public let keys: [String]
    /// Fields of the job that the gateway does not know.
    public let unknownFields: [String]

    private enum CodingKeys: String, CodingKey { case id, lane, images, unknownFields }

    /// Decodes a gateway's response.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = try container.decode(String.self, forKey: .id)
        lane = try container.decode(ImageJob.Priority.self, forKey: .lane)
        keys = try container.decode([String].self, forKey: .images).map { path in
            let name = String(path.split(separator: "/").last ?? "")
            return name.removingPercentEncoding ?? name
        }
        unknownFields = try container.decodeIfPresent([String].self, forKey: .unknownFields) ?? []
    }
}

/// The state of a job.
public struct JobState: Sendable, Equatable, Decodable {
    /// The job's id.
    public let id: String
    /// The status.
    public let status: Status
    /// The job's last event; nil before the first one, and for events larger than 64 KiB.
    public let event: ImageEvent?

    private enum CodingKeys: String, CodingKey { case id, status = "state", event }

    /// The status of a job: the type of its last event, or `accepted` before the first one.
    public struct Status: RawRepresentable, Sendable, Hashable, Codable {
        /// The name of the status.
        public let rawValue: String
        /// Creates a status that has no static member here.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The job has not ended.
        public static let accepted = Self(rawValue: "accepted"), started = Self(rawValue: "started")
        /// The job has ended.
        public static let ready = Self(rawValue: "ready"), failed = Self(rawValue: "failed"),
            cancelled = Self(rawValue: "cancelled"), superseded = Self(rawValue: "superseded")

        /// True if the job has ended.
        public var isTerminal: Bool { [.ready, .failed, .cancelled, .superseded].contains(self) }
    }
}
