import HTTPServer
import HalcyonCluster
import HalcyonModel
import HalcyonWire
import JSON
import Kafka

/// Jobs over HTTP: submitted, asked about, cancelled.
struct JobRoutes: Sendable {
    let desk: JobDesk
    let memory: JobMemory
    let feed: EventFeed
    let control: ControlPublisher
    let options: JobsOptions

    var all: [Route] {
        [
            Route("POST", "/v1/jobs", for: .submit, startsJobs: true, answer: submit),
            Route("GET", "/v1/jobs/{id}", for: .read, answer: look),
            Route("DELETE", "/v1/jobs/{id}", for: .submit, answer: cancel),
        ]
    }

    // MARK: Submit

    private func submit(_ call: Call) async throws -> HTTPServer.Response {
        switch call.bodyType {
        case "application/json":
            return try await submitOne(call)
        case "application/x-ndjson", "application/ndjson", "application/jsonl":
            return try await JobLines(desk: desk, most: options.linesAtOnce).take(call)
        default:
            throw Problem(.unsupportedMediaType, "a job is application/json, and several are application/x-ndjson")
        }
    }

    private func submitOne(_ call: Call) async throws -> HTTPServer.Response {
        let prepared = try desk.prepare(try await call.request.body.collect(atMost: desk.reader.maximumBytes))
        try await desk.submit(prepared, for: call.caller, traceparent: call.traceparent, by: desk.latest(for: call))
        let accepted = AcceptedJob(prepared)
        var writer = JSONWriter(capacity: 512)
        writer.value(accepted)
        return HTTPServer.Response(status: 202, json: writer.bytes, headers: ["Location": accepted.location])
    }

    // MARK: Look

    /// What is known of a job; with `wait` not before it has ended or so many seconds are over.
    private func look(_ call: Call) async throws -> HTTPServer.Response {
        let id = call["id"]
        guard let text = call.request.value(of: "wait") else { return try await state(of: id) }
        let limit = try Wait(text).duration(atMost: options.longestWait)
        // Before looking: what ends meanwhile is not missed.
        let waiter = feed.wait(for: id)
        defer { waiter.leave() }
        let now = try await memory.state(of: id)
        if let now, Self.isOver(now) { return HTTPServer.Response(status: 200, json: now) }
        guard let (event, json) = try await waiter.end(within: limit) else { return try await state(of: id) }
        return HTTPServer.Response(status: 200, json: JobMemory.state(after: event, json))
    }

    private func state(of id: String) async throws -> HTTPServer.Response {
        guard let json = try await memory.state(of: id) else {
            throw Problem(
                .notFound,
                "nothing is known of this job: it did not come by HTTP, or ended too long ago, or has another id")
        }
        return HTTPServer.Response(status: 200, json: json)
    }

    private static func isOver(_ state: [UInt8]) -> Bool {
        // What another release has kept may be unreadable here: then it is not known to be over.
        guard let root = try? JSON.parse(state, maximumSize: state.count, maximumDepth: 64),
            let word = root.member("state")?.asString
        else { return false }
        return Event.Kind(rawValue: word)?.isTerminal ?? false
    }

    // MARK: Cancel

    /// Tells all workers. Whether one of them was in time is told by the job's event.
    private func cancel(_ call: Call) async throws -> HTTPServer.Response {
        let id = call["id"]
        if !call.caller.mayAdminister {
            guard let name = call.caller.name, try await memory.isOwned(id, by: name) else {
                throw Problem(
                    .forbidden, "no job of this id is known to have come by this key; the scope admin may cancel all")
            }
        }
        // While Redis is away nobody knows: workers pass over what has ended.
        if let known = try? await memory.state(of: id), Self.isOver(known) {
            throw Problem(.conflict, "the job has ended already")
        }
        do throws(KafkaError) {
            try await control.publish(.cancel(id))
        } catch {
            throw Problem(.unavailable, "workers cannot be told now; try again", retryAfter: 5)
        }
        var writer = JSONWriter(capacity: 128)
        writer.object { writer in
            writer.member("id", id)
            writer.member("state", "cancelling")
        }
        return HTTPServer.Response(status: 202, json: writer.bytes)
    }
}

/// How jobs are taken over HTTP.
public struct JobsOptions: Sendable {
    /// Jobs of one request, one a line. More are answered with 413; those before are taken.
    public var linesAtOnce = 100_000
    /// How long the brokers may take to have a job. It is given up then, and never sent, so it must be shorter by more than
    /// ``JobDesk/margin`` than the server's limit of a request.
    public var sendTime = Duration.seconds(20)
    /// The longest that `wait` may ask for.
    public var longestWait = Duration.seconds(30)
    /// Seconds after its last event that a job is remembered.
    public var memory = 3600.0

    /// The defaults.
    public init() {}
}
