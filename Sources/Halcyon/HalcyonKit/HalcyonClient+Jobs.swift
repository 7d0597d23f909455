import Foundation

extension HalcyonClient {
    /// Submits a job. When this returns the brokers have it; its end is told by an event. A key with the scope `submit` is needed.
    ///
    /// A request that is under way is not broken off when the task is cancelled: what is known of the job then is true.
    /// - Throws: `HalcyonError`; `CancellationError`.
    @discardableResult
    public func submit(_ job: ImageJob) async throws -> AcceptedJob {
        var request = Request(method: "POST", path: ["jobs"])
        request.fields["Content-Type"] = "application/json"
        request.body = try Self.encode(job)
        return try Self.decode(AcceptedJob.self, try await desk.ask(request, whole: true).body)
    }

    /// Submits many jobs at once.
    /// - Returns: what became of each, in their order.
    /// - Throws: `HalcyonError` where the gateway took none of them as they are, or not all; `CancellationError`.
    public func submit(_ jobs: [ImageJob]) async throws -> [Result<AcceptedJob, HalcyonError>] {
        guard !jobs.isEmpty else { return [] }
        var request = Request(method: "POST", path: ["jobs"])
        request.fields["Content-Type"] = "application/x-ndjson"
        request.body = try jobs.reduce(into: Data()) { $0 += try Self.encode($1) + [10] }
        let answers = try await desk.ask(request, whole: true).body.split(separator: 10)
        guard answers.count == jobs.count else {
            throw HalcyonError.notUnderstood("\(answers.count) answers to \(jobs.count) jobs")
        }
        struct Refused: Decodable { let problem: JSONValue }
        return try answers.map { line in
            if let refused = try? JSONDecoder().decode(Refused.self, from: line) {
                return .failure(.problem(Problem(status: nil, body: try JSONEncoder().encode(refused.problem))))
            }
            return .success(try Self.decode(AcceptedJob.self, line))
        }
    }

    /// What has become of a job. A key with the scope `read` is needed.
    /// - Parameters:
    ///   - id: the job's, as ``AcceptedJob/id`` has it.
    ///   - wait: for so long its end is waited for, or for as long as the gateway lets.
    /// - Throws: `HalcyonError`, such as a problem of the kind `notFound`; `CancellationError`.
    public func state(ofJob id: String, wait: Duration = .zero) async throws -> JobState {
        var request = Request(path: ["jobs", id])
        if wait > .zero { request.query = [("wait", min(wait, desk.options.poll).inMilliseconds)] }
        return try Self.decode(JobState.self, try await desk.ask(request, wait > .zero ? .wait : .request).body)
    }

    /// Cancels a job. Whether that was in time is told by the job's event. A key with the scope `submit` is needed.
    /// - Throws: `HalcyonError`, of the kind `conflict` where the job has ended already; `CancellationError`.
    public func cancel(job id: String) async throws {
        _ = try await desk.ask(Request(method: "DELETE", path: ["jobs", id]), whole: true)
    }

    /// The job as JSON, with an id: each has one, so that it may be sent again.
    private static func encode(_ job: ImageJob) throws -> Data {
        var job = job
        job.id = job.id ?? newID()
        return try JSONEncoder().encode(job)
    }

    static func newID() -> String { UUID().uuidString.lowercased() }

    static func decode<Value: Decodable>(_ type: Value.Type, _ body: Data) throws -> Value {
        do { return try JSONDecoder().decode(type, from: body) } catch {
            throw HalcyonError.notUnderstood(String(decoding: body.prefix(200), as: UTF8.self))
        }
    }
}
