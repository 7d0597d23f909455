import HTTPServer
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka

/// Routes that submit jobs, return their states and cancel them.
struct JobRoutes: Sendable {
    let submitter: JobSubmitter
    let memory: JobStateStore
    let feed: EventFeed
    let control: ControlPublisher
    let options: JobsOptions
    /// The time after which the stored state of a job that is waited for is read again. Later pauses double.
    private static let firstPause = Duration.milliseconds(100)

    var all: [Route] {
        [
            Route("POST", "/v1/jobs", for: .submit, startsJobs: true, answer: submit),
            Route("GET", "/v1/jobs/{id}", for: .read, answer: look),
            Route("DELETE", "/v1/jobs/{id}", for: .submit, answer: cancel),
        ]
    }

    // MARK: Submit

    private func submit(_ call: RequestContext) async throws -> HTTPServer.Response {
        switch call.bodyType {
        case "application/json":
            return try await submitOne(call)
        case "application/x-ndjson", "application/ndjson", "application/jsonl":
            return try await NDJSONJobImporter(submitter: submitter, most: options.linesAtOnce).take(call)
        default:
            throw Problem(
                .unsupportedMediaType, "unsupported Content-Type; use application/json or application/x-ndjson")
        }
    }

    private func submitOne(_ call: RequestContext) async throws -> HTTPServer.Response {
        let prepared = try await submitter.prepare(
            try await call.request.body.collect(upTo: submitter.reader.maximumBytes))
        try await submitter.submit(
            prepared, for: call.caller, traceparent: call.traceparent, by: submitter.latest(for: call))
        let accepted = AcceptedJob(prepared)
        var writer = JSONWriter(capacity: 512)
        writer.value(accepted)
        return HTTPServer.Response(status: 202, json: writer.bytes, headers: ["Location": accepted.location])
    }

    // MARK: Look

    /// Returns the state of a job. With `wait`, the response is delayed until the job has ended or the wait is over.
    private func look(_ call: RequestContext) async throws -> HTTPServer.Response {
        let id = call["id"]
        guard let text = call.request.value(of: "wait") else { return try await state(of: id) }
        let limit = try WaitParameter(text).duration(upTo: options.longestWait)
        // Registered before the state is read, so that a terminal event is not missed.
        let waiter = feed.wait(for: id)
        defer { waiter.leave() }
        let now = try await memory.state(of: id)
        if let now, Self.isOver(now) { return HTTPServer.Response(status: 200, json: now) }
        guard let end = try await end(of: id, waiter, within: limit) else { return try await state(of: id) }
        return HTTPServer.Response(status: 200, json: end)
    }

    /// Waits for the event that ends a job, or for the state that another request or gateway stores after it.
    ///
    /// The state is stored after the event has reached the feed. If the feed read the event shortly before the waiter
    /// was registered, only the state tells the end.
    /// - Returns: The state; nil after the timeout.
    private func end(of id: String, _ waiter: JobCompletionWaiter, within limit: Duration) async throws -> [UInt8]? {
        try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
            group.addTask {
                guard let (event, json) = try await waiter.end(within: limit) else { return nil }
                // A request that follows the response must not see an earlier state.
                await memory.store(event, json)
                return JobStateStore.state(after: event, json)
            }
            group.addTask {
                var pause = Self.firstPause
                while true {
                    try await Task.sleep(for: pause)
                    pause *= 2
                    // While Redis is unavailable, only the event is awaited.
                    if let now = try? await memory.state(of: id), Self.isOver(now) { return now }
                }
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }

    private func state(of id: String) async throws -> HTTPServer.Response {
        guard let json = try await memory.state(of: id) else {
            throw Problem(
                .notFound,
                "unknown job: it was not submitted over HTTP, its state has expired, or the id is wrong")
        }
        return HTTPServer.Response(status: 200, json: json)
    }

    private static func isOver(_ state: [UInt8]) -> Bool {
        // A state that another release has stored may be unreadable. The job then does not count as ended.
        guard let root = try? JSON.parse(state, maximumSize: state.count, maximumDepth: 64),
            let word = root.member("state")?.asString
        else { return false }
        return Event.Kind(rawValue: word)?.isTerminal ?? false
    }

    // MARK: Cancel

    /// Sends the cancellation to all workers. The job's event reports whether it was in time.
    private func cancel(_ call: RequestContext) async throws -> HTTPServer.Response {
        let id = call["id"]
        if !call.caller.mayAdminister {
            guard let name = call.caller.name, try await memory.isOwned(id, by: name) else {
                throw Problem(
                    .forbidden,
                    "this key has submitted no known job with this id; cancelling other jobs needs the scope admin")
            }
        }
        // If Redis is down the state is unknown. Workers ignore jobs that have ended.
        if let known = try? await memory.state(of: id), Self.isOver(known) {
            throw Problem(.conflict, "the job has already ended")
        }
        // Jobs of other producers may have the same id.
        let owner = call.caller.mayAdminister ? nil : call.caller.name
        try await control.notify(.cancel(.job(id, ownedBy: owner)))
        var writer = JSONWriter(capacity: 128)
        writer.object { writer in
            writer.member("id", id)
            writer.member("state", "cancelling")
        }
        return HTTPServer.Response(status: 202, json: writer.bytes)
    }
}

/// Settings for submitting jobs over HTTP.
public struct JobsOptions: Sendable {
    /// The maximum number of jobs in one request, one per line. A longer request is rejected with 413 after the first
    /// jobs were accepted.
    public var linesAtOnce = 100_000
    /// The time limit for publishing a job to Kafka. After that the job is never sent. It must be shorter than the
    /// server's request timeout by more than ``JobSubmitter/margin``.
    public var sendTime = Duration.seconds(20)
    /// The maximum value of `wait`.
    public var longestWait = Duration.seconds(30)
    /// Seconds for which the state of a job is stored after its last event.
    public var memory = 3600.0

    /// Creates options with default values.
    public init() {}
}
