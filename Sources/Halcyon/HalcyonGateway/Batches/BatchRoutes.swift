import Concurrency
import Formats
import HTTPServer
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import Redis

/// Routes that create batches, return their states and failures, and cancel, close and retry them.
struct BatchRoutes: Sendable {
    let submitter: JobSubmitter
    let failed: FailedJobReader
    /// The maximum number of jobs in one request.
    let mostJobs: Int
    /// The maximum size of a request with a template and a list of sources, in bytes.
    let maximumBytes: Int

    private var store: BatchStore { submitter.batches }

    var all: [Route] {
        [
            Route("POST", "/v1/batches", for: .submit, startsJobs: true, answer: create),
            Route("GET", "/v1/batches", for: .read, answer: list),
            Route("GET", "/v1/batches/{id}", for: .read) { call in try Self.response(200, try await batch(call)) },
            Route("GET", "/v1/batches/{id}/failures", for: .read, answer: failures),
            Route("POST", "/v1/batches/{id}/close", for: .submit, answer: close),
            Route("POST", "/v1/batches/{id}/retry", for: .submit, startsJobs: true, answer: retry),
            Route("POST", "/v1/presets/{name}/rerender", for: .admin, startsJobs: true, answer: rerender),
            Route("DELETE", "/v1/batches/{id}", for: .submit, answer: cancel),
        ]
    }

    // MARK: Create

    private func create(_ call: RequestContext) async throws -> HTTPServer.Response {
        let request = try BatchRequest(call, reader: submitter.reader)
        switch call.bodyType {
        case "application/json":
            let body = try await call.request.body.collect(upTo: maximumBytes)
            let (request, contents) = try request.reading(body, maximumBytes: maximumBytes)
            let sources: [[UInt8]]
            switch contents {
            case .prefix(let prefix):
                guard request.closes, request.first == 0 else {
                    throw Problem(
                        .badRequest, "close and first cannot be used with prefix, because the worker numbers the jobs")
                }
                return try await list(.prefix(prefix.text), request, call)
            case .sources(let list): sources = list
            }
            guard sources.count <= mostJobs else { throw Problem(.tooLarge, "more than \(mostJobs) jobs") }
            let writer = try await writer(request, call)
            return try await submit(writer, request, call) { answer in
                let jobs = sources.lazy.map { source in
                    var job = JobBuilder()
                    job["source"] = source
                    return job
                }
                for problem in try await send(jobs, from: request.first, writer, call, for: call.caller.name) {
                    answer.add(problem)
                }
            }
        case "application/x-ndjson", "application/ndjson", "application/jsonl":
            let writer = try await writer(request, call)
            return try await submit(writer, request, call) { answer in
                let lines = NDJSONLines(longest: submitter.reader.maximumBytes, most: mostJobs)
                for problem in try await lines.map(
                    call,
                    { (line, index) -> BatchLineProblem? in
                        guard let bytes = line.bytes else {
                            return BatchLineProblem(
                                line: line.number,
                                Problem(.tooLarge, "the job is larger than \(submitter.reader.maximumBytes) bytes"))
                        }
                        do throws(JSONError) {
                            let job = try JobBuilder(json: bytes, maximumSize: submitter.reader.maximumBytes)
                            return await send(
                                job, request.first + index, line: line.number, writer, call, for: call.caller.name)
                        } catch {
                            return BatchLineProblem(line: line.number, Problem(.invalidJob, "invalid job: \(error)"))
                        }
                    })
                { answer.add(problem) }
            }
        default:
            throw Problem(
                .unsupportedMediaType, "unsupported Content-Type; use application/x-ndjson or application/json")
        }
    }

    /// Creates a batch of the jobs whose results were made with a preset.
    private func rerender(_ call: RequestContext) async throws -> HTTPServer.Response {
        try call.requireJSON()
        let name = call["name"]
        var request = try BatchRequest(call, reader: submitter.reader)
        let reload: Bool
        switch call.request.value(of: "reload") {
        case nil, "false": reload = false
        case "true": reload = true
        default: throw Problem(.badRequest, "invalid reload: expected true or false")
        }
        // Another gateway may just have registered a new version.
        try await submitter.presets.reloadForRequest()
        guard let preset = submitter.presets[name] else { throw Problem(.notFound, "there is no preset \(name)") }
        // The jobs have their own tenants.
        request.template["tenant"] = nil
        if request.template["priority"] == nil { request.template.set("priority", Lane.low.rawValue) }
        // Workers that have an older version load this one.
        request.template.set("preset", PresetReference(name, version: preset.version))
        return try await list(.preset(name, tenant: request.tenant, reload: reload), request, call)
    }

    /// Creates a batch whose jobs are listed by a worker.
    private func list(
        _ contents: BatchListing.Contents, _ request: BatchRequest, _ call: RequestContext
    ) async throws -> HTTPServer.Response {
        let draft = BatchWriter(
            request.id, submitter.producer, topics: submitter.topics, reader: submitter.reader,
            template: request.template)
        let example: ValidatedJob
        do throws(InvalidJobError) {
            example = try draft.check(contents)
        } catch {
            guard error.missingPreset != nil else { throw Problem(invalid: error) }
            try await submitter.presets.reloadForRequest()
            do throws(InvalidJobError) { example = try draft.check(contents) } catch { throw Problem(invalid: error) }
        }
        if request.template["id"] != nil, let name = call.caller.name {
            try await submitter.memory.claim(example.job.id, for: name)
        }
        let writer = try await writer(request, call, contents)
        try await published { () async throws(KafkaError) in
            try await writer.open(
                created: Timestamp.now.milliseconds, tenant: request.tenant, owner: call.caller.name,
                webhook: request.webhook)
            try await writer.list(contents)
        }
        return try Self.response(
            202, BatchSubmission(id: writer.id, listed: contents), location: "/v1/batches/\(writer.id)")
    }

    /// Checks that a batch of this id may be created or continued.
    private func writer(
        _ request: BatchRequest, _ call: RequestContext, _ contents: BatchListing.Contents? = nil
    ) async throws -> BatchWriter {
        var batch = Batch(
            id: request.id, tenant: request.tenant, owner: call.caller.name, created: Timestamp.now.milliseconds)
        switch contents {
        case .prefix(let url): batch.prefix = url
        case .preset(let name, _, _): batch.preset = name
        case nil: break
        }
        // If Redis is down, the id is not known to be in use.
        if let found = try? await withCancellationShield({ [batch] in try await store.announce(batch) }) {
            guard let known = found.batch else { throw Problem.unknownOwner }
            guard known.owner == call.caller.name else {
                throw Problem(.conflict, "a batch with this id was created \(known.creation); use a different id")
            }
            guard known.total == nil else {
                throw Problem(.conflict, "a batch with this id exists and is closed; use a different id")
            }
            guard known.prefix == batch.prefix, known.preset == batch.preset else {
                throw Problem(.conflict, "a batch with this id exists and has other jobs; use a different id")
            }
        }
        return BatchWriter(
            request.id, submitter.producer, topics: submitter.topics, reader: submitter.reader,
            template: request.template)
    }

    /// Announces the batch, submits its jobs and closes it.
    private func submit(
        _ writer: BatchWriter, _ request: BatchRequest, _ call: RequestContext,
        _ submitJobs: (inout BatchSubmission) async throws -> Void
    ) async throws -> HTTPServer.Response {
        var submission = BatchSubmission(id: writer.id)
        try await published { () async throws(KafkaError) in
            try await writer.open(
                created: Timestamp.now.milliseconds, tenant: request.tenant, owner: call.caller.name,
                webhook: request.webhook)
        }
        try await submitJobs(&submission)
        if let failure = submission.failure { throw failure }
        // The batch remains open, so that the request can be corrected and repeated.
        guard submission.accepted > 0 else { throw submission.reason }
        let total = request.first + submission.accepted
        if request.closes {
            try await published { () async throws(KafkaError) in try await writer.close(total: total) }
        }
        return try Self.response(202, submission, location: "/v1/batches/\(writer.id)")
    }

    /// Submits jobs, several at a time.
    /// - Parameter owner: the name of the key that the jobs belong to; nil for none.
    /// - Returns: the problem of each job in order; nil for jobs that were accepted.
    private func send(
        _ jobs: some Sequence<JobBuilder>, from first: Int, _ writer: BatchWriter, _ call: RequestContext,
        for owner: String?
    ) async throws -> [BatchLineProblem?] {
        try await mapConcurrently { job, index in
            await send(job, first + index, line: index + 1, writer, call, for: owner)
        } of: { add in
            for job in jobs { try await add(job) }
        }
    }

    /// Submits a job, even if the client has disconnected.
    /// - Parameter owner: the name of the key that the job belongs to; nil for none.
    /// - Returns: the problem of a job that is not valid or was not accepted.
    private func send(
        _ job: JobBuilder, _ index: Int, line: Int, _ writer: BatchWriter, _ call: RequestContext, for owner: String?
    ) async -> BatchLineProblem? {
        do {
            let trace = call.traceparent.map { RecordHeader("traceparent", $0) }
            let key = owner.map { RecordHeader(OwnerHeader.name, $0) }
            let valid: ValidatedJob
            do throws(InvalidJobError) {
                valid = try writer.validated(job, index: index)
            } catch {
                guard error.missingPreset != nil else { throw error }
                try await submitter.presets.reloadForRequest()
                valid = try writer.validated(job, index: index)
            }
            try await withCancellationShield {
                if let owner { try await submitter.memory.claim(valid.job.id, for: owner) }
                try await writer.send(valid, headers: [trace, key].compactMap(\.self))
            }
            return nil
        } catch let problem as Problem {
            return BatchLineProblem(line: line, problem)
        } catch let error as InvalidJobError {
            return BatchLineProblem(line: line, Problem(invalid: error))
        } catch let error as KafkaError where error.code == .messageTooLarge {
            return BatchLineProblem(
                line: line, Problem(.tooLarge, "the job exceeds the maximum message size of the Kafka brokers"))
        } catch {
            return BatchLineProblem(line: line, Self.unavailable)
        }
    }

    private static let unavailable = Problem(
        .unavailable, "Kafka does not accept jobs at the moment; repeat the request with the same id", retryAfter: 5)

    private func published(_ body: () async throws(KafkaError) -> Void) async throws(Problem) {
        do throws(KafkaError) { try await body() } catch { throw Self.unavailable }
    }

    // MARK: Look

    private func batch(_ call: RequestContext) async throws -> Batch { try await state(call).batch }

    private func state(_ call: RequestContext) async throws -> (batch: Batch, isOwnerKnown: Bool) {
        let id = call["id"]
        guard Batch.isID(id),
            case (let batch?, _, let isOwnerKnown) = try await stored({ () async throws(RedisError) in
                try await store.state(of: id)
            })
        else { throw Problem(.notFound, "unknown batch: it has expired, no job of it has ended, or the id is wrong") }
        return (batch, isOwnerKnown)
    }

    private func list(_ call: RequestContext) async throws -> HTTPServer.Response {
        let limit = try call.number("limit", in: 1...1000) ?? 100
        let batches = try await stored { () async throws(RedisError) in try await store.newest(limit) }
        var writer = JSONWriter(capacity: 4096)
        writer.object { writer in
            writer.name("batches")
            writer.array { writer in for batch in batches { writer.value(batch) } }
        }
        return HTTPServer.Response(status: 200, json: writer.bytes)
    }

    private func failures(_ call: RequestContext) async throws -> HTTPServer.Response {
        let batch = try await batch(call)
        let start = try call.number("start", in: 0...Batch.highestIndex) ?? 0
        let limit = try call.number("limit", in: 1...1000) ?? 100
        let failures = try await stored { () async throws(RedisError) in
            try await store.failures(of: batch.id, from: start, count: limit)
        }
        var writer = JSONWriter(capacity: 4096)
        writer.object { writer in
            writer.member("failed", batch.counts.failed)
            writer.name("failures")
            writer.array { writer in for failure in failures { writer.value(failure) } }
            let next = start + failures.count
            let isMore = failures.count == limit && next < batch.counts.failed
            writer.member("next", isMore ? "/v1/batches/\(batch.id)/failures?start=\(next)&limit=\(limit)" : nil)
        }
        return HTTPServer.Response(status: 200, json: writer.bytes)
    }

    private func stored<Value: Sendable>(
        _ body: () async throws(RedisError) -> Value
    ) async throws(Problem) -> Value {
        do throws(RedisError) {
            return try await body()
        } catch {
            throw Problem(.unavailable, "batches cannot be read at the moment; try again", retryAfter: 2)
        }
    }

    // MARK: Change

    /// Returns the batch if the caller may change it.
    private func own(_ call: RequestContext) async throws -> Batch {
        let (batch, isOwnerKnown) = try await state(call)
        if call.caller.mayAdminister { return batch }
        guard isOwnerKnown else { throw Problem.unknownOwner }
        guard call.caller.name != nil, batch.owner == call.caller.name else {
            throw Problem(
                .forbidden, "this key has not created the batch; changing other batches needs the scope admin")
        }
        return batch
    }

    private func cancel(_ call: RequestContext) async throws -> HTTPServer.Response {
        var batch = try await own(call)
        guard batch.completed == nil else { throw Problem(.conflict, "the batch is completed") }
        try await published { () async throws(KafkaError) in try await writer(of: batch).cancel() }
        batch.cancelled = batch.cancelled ?? Timestamp.now.milliseconds
        return try Self.response(202, batch)
    }

    private func close(_ call: RequestContext) async throws -> HTTPServer.Response {
        try call.requireJSON()
        var batch = try await own(call)
        let body = try await call.request.body.collect(upTo: 4096)
        let total: Int
        do throws(JSONError) {
            total = try Batch.total(try JSON.parse(body, maximumSize: 4096))
        } catch {
            throw Problem(.badRequest, "invalid request: \(error)")
        }
        if let known = batch.total, known != total {
            throw Problem(.conflict, "the batch is closed with \(known) jobs")
        }
        try await published { () async throws(KafkaError) in try await writer(of: batch).close(total: total) }
        batch.total = total
        return try Self.response(202, batch)
    }

    /// Creates a batch of the jobs that failed.
    private func retry(_ call: RequestContext) async throws -> HTTPServer.Response {
        try call.requireJSON()
        let batch = try await own(call)
        guard batch.completed != nil else { throw Problem(.conflict, "the batch is not completed; cancel it or wait") }
        guard batch.counts.failed > 0 else { throw Problem(.conflict, "no job of the batch failed") }
        let request = try BatchRequest(
            call, reader: submitter.reader,
            defaultID: BatchWriter.retryID(of: batch.id))
        let failures = try await stored { () async throws(RedisError) in
            try await store.failures(of: batch.id, from: 0, count: batch.counts.failed)
        }
        let slices = failed.slices(of: failures)
        let response: Result<HTTPServer.Response, any Error>
        do {
            response = .success(try await submit(slices, of: batch, request, call))
        } catch {
            response = .failure(error)
        }
        await slices.close()
        return try response.get()
    }

    /// Creates a batch of failed jobs of another one. The jobs are numbered in the order of their failures, so that a
    /// request that is repeated numbers them in the same way.
    private func submit(
        _ slices: FailedJobSlices, of batch: Batch, _ request: BatchRequest, _ call: RequestContext
    ) async throws -> HTTPServer.Response {
        func next() async throws -> [FailedJob]? {
            do {
                return try await slices.next()
            } catch {
                throw Problem(.unavailable, "the failed jobs cannot be read at the moment; try again", retryAfter: 5)
            }
        }
        guard let first = try await next() else {
            throw Problem(.conflict, "Kafka has deleted the messages of the failed jobs; submit them again")
        }
        let writer = try await writer(request, call)
        // The jobs remain those of the key that created the batch, even if an administrator submits them again.
        let owner = batch.owner ?? call.caller.name
        return try await submit(writer, request, call) { submission in
            var slice: [FailedJob]? = first
            while let jobs = slice {
                let problems = try await mapConcurrently { (failed: FailedJob, _: Int) in
                    await send(
                        failed.job, request.first + failed.index, line: failed.index + 1, writer, call, for: owner)
                } of: { add in
                    for job in jobs { try await add(job) }
                }
                for problem in problems { submission.add(problem) }
                slice = try await next()
            }
            submission.missing = batch.counts.failed - submission.accepted - submission.rejected
        }
    }

    private func writer(of batch: Batch) -> BatchWriter {
        BatchWriter(batch.id, submitter.producer, topics: submitter.topics, reader: submitter.reader)
    }

    private static func response(
        _ status: Int, _ value: some JSONWritable, location: String? = nil
    ) throws -> HTTPServer.Response {
        var writer = JSONWriter(capacity: 1024)
        writer.value(value)
        return HTTPServer.Response(
            status: status, json: writer.bytes, headers: location.map { ["Location": $0] } ?? [:])
    }
}

/// The parameters of a request that creates a batch.
struct BatchRequest: Sendable {
    let id: String
    let tenant: String?
    /// False if more jobs follow in other requests.
    let closes: Bool
    /// The index of the first job within the batch.
    let first: Int
    /// The webhook of the batch.
    let webhook: Webhook?
    /// The fields that all jobs have unless they set them.
    var template = JobBuilder()

    /// - Throws: ``Problem``.
    init(_ call: RequestContext, reader: JobDecoder, defaultID: String? = nil) throws(Problem) {
        id = call.request.value(of: "id") ?? defaultID ?? BatchWriter.newID
        guard Batch.isID(id) else {
            throw Problem(
                .badRequest,
                "invalid id: expected 1 to \(Batch.longestID) letters, digits, dots, hyphens, underscores and colons")
        }
        switch call.request.value(of: "close") {
        case nil, "true": closes = true
        case "false": closes = false
        default: throw Problem(.badRequest, "invalid close: expected true or false")
        }
        first = try call.number("first", in: 0...Batch.highestIndex) ?? 0
        do throws(JobError) {
            webhook = try call.request.value(of: "webhook").map { text throws(JobError) in try Webhook(text) }
            if let webhook { try reader.checkWebhook(webhook) }
        } catch {
            throw Problem(.badRequest, "invalid webhook: \(error.message)")
        }
        tenant = call.request.value(of: "tenant")
        for name in ["tenant", "priority", "deadline"] {
            guard let text = call.request.value(of: name) else { continue }
            // A text that is not a JSON number is a date.
            if name == "deadline", let value = try? JSON.parse(Array(text.utf8), maximumSize: 64), value.kind == .number
            {
                template[name] = value.bytes
            } else {
                template.set(name, text)
            }
        }
        try check(reader)
    }

    /// The sources of a request with a template.
    enum Contents {
        case sources([[UInt8]])
        case prefix(S3Prefix)
    }

    /// Returns the request with the template of a JSON body, and the sources in it.
    func reading(_ body: [UInt8], maximumBytes: Int) throws(Problem) -> (BatchRequest, Contents) {
        var request = self
        var sources: [[UInt8]]?
        var prefix: S3Prefix?
        do throws(JSONError) {
            try JSON.parse(body, maximumSize: maximumBytes).forEachMember { name, value throws(JSONError) in
                switch name {
                case "template":
                    let own = try JobBuilder(json: value.bytes, maximumSize: maximumBytes)
                    request.template = own.overlaid(by: template)
                case "sources":
                    var list: [[UInt8]] = []
                    try value.forEachElement { element throws(JSONError) in list.append(element.bytes) }
                    sources = list
                case "prefix":
                    let url = try value.string()
                    do throws(JobError) {
                        prefix = try S3Prefix(url)
                    } catch {
                        throw JSONError(.invalid, error.message)
                    }
                default: throw JSONError(.unknown, "unknown member; expected template, sources and prefix")
                }
            }
        } catch {
            throw Problem(.badRequest, "invalid batch: \(error)")
        }
        if let prefix {
            guard sources == nil else {
                throw Problem(.badRequest, "invalid batch: sources and prefix exclude each other")
            }
            return (request, .prefix(prefix))
        }
        guard let sources, !sources.isEmpty else {
            throw Problem(
                .badRequest, "invalid batch: sources: is missing or empty; list what to load, or give a prefix")
        }
        return (request, .sources(sources))
    }

    /// Checks the common fields with a job that has nothing else.
    private func check(_ reader: JobDecoder) throws(Problem) {
        var job = template
        job.set("source", "initials:A")
        do throws(InvalidJobError) {
            _ = try ValidatedJob(job, fallbackID: id, by: reader)
        } catch {
            throw Problem(.badRequest, error.failure.message)
        }
    }
}

/// A job of a request that was not accepted.
struct BatchLineProblem: Sendable {
    let line: Int
    let problem: Problem

    init(line: Int, _ problem: Problem) {
        self.line = line
        self.problem = problem
    }
}

/// The outcome of a request that creates a batch.
struct BatchSubmission: JSONWritable {
    let id: String
    /// The jobs that a worker lists; nil if the request has the jobs.
    let listed: BatchListing.Contents?
    private(set) var accepted = 0
    private(set) var rejected = 0
    /// The number of failed jobs that Kafka has deleted.
    var missing = 0
    private var problems: [BatchLineProblem] = []
    /// The problem that prevented jobs from being sent; nil if there is none.
    private(set) var failure: Problem?

    /// The maximum number of problems in a response.
    private static let mostProblems = 100

    init(id: String, listed: BatchListing.Contents? = nil) {
        self.id = id
        self.listed = listed
    }

    /// The problem of a request without an accepted job.
    var reason: Problem {
        guard let first = problems.min(by: { $0.line < $1.line }) else {
            return Problem(.badRequest, "the request has no jobs")
        }
        return Problem(
            first.problem.kind, "no job was accepted; line \(first.line): \(first.problem.detail)",
            code: first.problem.code)
    }

    mutating func add(_ problem: BatchLineProblem?) {
        guard let problem else { return accepted += 1 }
        if problem.problem.kind == .unavailable { failure = problem.problem }
        rejected += 1
        if problems.count < Self.mostProblems { problems.append(problem) }
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("id", id)
            switch listed {
            case .prefix(let url): writer.member("prefix", url)
            case .preset(let name, _, _): writer.member("preset", name)
            case nil:
                writer.member("accepted", accepted)
                writer.member("rejected", rejected)
            }
            writer.member("missing", missing == 0 ? nil : missing)
            writer.member("status", "/v1/batches/\(id)")
            if problems.isEmpty { return }
            writer.name("problems")
            writer.array { writer in
                for problem in problems {
                    writer.object { writer in
                        writer.member("line", problem.line)
                        writer.name("problem")
                        writer.raw(problem.problem.json)
                    }
                }
            }
        }
    }
}
