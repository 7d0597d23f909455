import HTTPServer
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import Kafka

/// Serves `GET /v1/render` and `GET /v1/render/preset/{name}`: the image that the URL describes, rendered unless it is
/// stored already, and `GET /v1/info`: facts about a source.
struct RenderRoutes: Sendable {
    let submitter: JobSubmitter
    let feed: EventFeed
    let images: ImageRoutes
    let results: ResultCache
    let control: ControlPublisher
    let options: RenderOptions

    var all: [Route] {
        ["/v1/render", "/v1/render/preset/{name}"].map {
            Route("GET", $0, for: .submit, acceptsSignature: true, startsJobs: true, answer: render)
        } + [Route("GET", "/v1/info", for: .submit, acceptsSignature: true, startsJobs: true, answer: info)]
    }

    private func info(_ call: RequestContext) async throws -> HTTPServer.Response {
        let query = try RenderQuery(call.request.query, isInfo: true)
        let request = RenderRequest(draft: query.draft, wait: query.wait, formats: [])
        return try await image(of: try await prepare(request, AcceptHeader(nil)), request, call)
    }

    private func render(_ call: RequestContext) async throws -> HTTPServer.Response {
        let query = try RenderQuery(call.request.query, preset: call.values["name"])
        let request = RenderRequest(draft: query.draft, wait: query.wait, formats: options.formats)
        return try await response(to: request, call)
    }

    /// Returns the image that a request describes, rendered unless it is stored already.
    func response(to request: RenderRequest, _ call: RequestContext) async throws -> HTTPServer.Response {
        let accepts = AcceptHeader(call.request.headers["Accept"])
        guard accepts.takesImages else { throw Problem(.notAcceptable, "this endpoint serves only image/* content") }
        let prepared = try await prepare(request, accepts)
        guard !prepared.job.isPrefetch, prepared.job.notBefore == nil else {
            throw Problem(
                .invalidJob, "the client waits for an image; a preset with prefetch or notBefore has none now")
        }
        var response: HTTPServer.Response
        do {
            response = try await image(of: prepared, request, call)
            if let disposition = request.disposition, let type = response.headers["Content-Type"] {
                response.headers["Content-Disposition"] = disposition.header(mediaType: type)
            }
        } catch let problem as Problem where accepts.prefersImages {
            response = Placeholder(for: prepared.job).response(for: problem)
        }
        response.headers.add("Vary", "Accept")
        return response
    }

    private func prepare(_ request: RenderRequest, _ accepts: AcceptHeader) async throws(Problem) -> ValidatedJob {
        var draft = request.draft
        // A client is waiting.
        if draft["priority"] == nil { draft.set("priority", Lane.high.rawValue) }
        if let format = try await format(for: draft, among: request.formats, accepts) {
            draft.set("format", format.rawValue)
        }
        if draft["quality"] == nil, let quality = request.qualities?.quality(ofFormat: draft["format"]) {
            draft.set("quality", quality)
        }
        return try await submitter.prepare(draft, naming: "render")
    }

    /// Returns the format that the client prefers, if the job has an automatic one.
    private func format(
        for draft: JobBuilder, among formats: [ImageFormat], _ accepts: AcceptHeader
    ) async throws(Problem) -> ImageFormat? {
        let isAuto = draft["format"].map { $0 == "auto".json } ?? true
        guard isAuto, let format = formats.first(where: accepts.names) else { return nil }
        guard draft["preset"] != nil else { return format }
        // The format is that of the preset, unless it is overridable and automatic.
        let job = try await submitter.prepare(draft, naming: "render").job
        let preset = job.preset.flatMap { submitter.presets[$0.name] }
        return preset?.overridable.contains("format") == true && job.variants.first?.output.hasAutomaticFormat == true
            ? format : nil
    }

    private func image(of prepared: ValidatedJob, _ request: RenderRequest, _ call: RequestContext) async throws
        -> HTTPServer.Response
    {
        if prepared.job.cache.looksAtResults, let there = await stored(prepared, call) { return there }
        // Registered before the job is sent, so that its terminal event is not missed.
        let waiter = feed.wait(for: prepared.job.id)
        defer { waiter.leave() }
        let wait = request.wait?.duration(upTo: options.wait) ?? options.wait
        try await submitter.send(
            prepared, traceparent: call.traceparent, by: submitter.latest(for: call),
            waitTimeout: WaitTimeout(wait - call.began.duration(to: .now)))
        // Counted from the start of the request, so the time that Kafka took is included.
        let limit = wait - call.began.duration(to: .now)
        let end: JobCompletionWaiter.End?
        do throws(CancellationError) {
            end = try await waiter.end(within: limit)
        } catch {
            guard Task.isCancelled else {
                throw Problem(
                    .unavailable, "the gateway is shutting down while the image is rendered; try again", retryAfter: 1)
            }
            // The client has disconnected. Other requests for the same image are not affected.
            let id = prepared.job.id
            // If this fails, the job is completed although no client waits for it.
            Task { try? await control.publish(.cancel(.job(id))) }
            throw error
        }
        guard let end else {
            throw Problem(.timeout, "the image is not ready yet; rendering continues, try again", retryAfter: 2)
        }
        return try await answer(end.event, call)
    }

    /// Returns the stored image, or nil if it does not exist or cannot be read. A worker then decides.
    private func stored(_ prepared: ValidatedJob, _ call: RequestContext) async -> HTTPServer.Response? {
        let key = prepared.keys[0].description
        // Only a worker may extend the TTL of a result. It also handles results that could not be read here.
        guard !ResultTTLPolicy(maxAge: prepared.job.maxAge).canExtend,
            let response = try? await images.find(key, call)
        else { return nil }
        results.used(CollectionOfOne(key), of: prepared.job.tenant)
        return response
    }

    /// Returns the response with the fallback picture of a job. Caches must not take it for the image.
    private func fallback(
        _ output: DecodedEvent.Output, _ format: ImageFormat, _ code: String
    ) async throws -> HTTPServer.Response {
        guard let data = if let data = output.data { data } else { try await results.read(output.key)?.body } else {
            throw Problem(
                .unavailable, "the fallback picture expired before it could be read; try again", retryAfter: 1)
        }
        var response = ImageResponse.once(format, size: (output.width, output.height), data.count, data)
        response.headers["Halcyon-Failure"] = code
        return response
    }

    private func answer(_ event: DecodedEvent, _ call: RequestContext) async throws -> HTTPServer.Response {
        switch event.ending {
        case .ready(let outputs, _):
            guard let output = outputs.first, let format = output.format else {
                throw Problem(.unavailable, "the image has a format that this gateway does not know")
            }
            if let code = event.fallback { return try await fallback(output, format, code) }
            if let data = output.data {
                return ImageResponse.once(format, size: (output.width, output.height), data.count, data)
            }
            guard let response = try await images.find(output.key, call, isNew: true) else {
                throw Problem(.unavailable, "the image expired before it could be read; try again", retryAfter: 1)
            }
            return response
        case .failed(let code, let message): throw Problem(failed: code, message)
        case .cancelled, .superseded, nil: throw Problem(.gone, "the job was cancelled")
        }
    }
}

/// A rendering that a client waits for: the job, and what concerns its response only.
struct RenderRequest: Sendable {
    /// The job, without an id.
    let draft: JobBuilder
    /// The time to wait for the image; nil for the gateway's default.
    var wait: WaitParameter?
    /// The formats that an automatic format may become by the `Accept` header of the client.
    let formats: [ImageFormat]
    /// The qualities of formats if the job has none; nil for those of Halcyon.
    var qualities: FormatQualities?
    /// The file name and the disposition that the response declares; nil for none.
    var disposition: ContentDisposition?
}

/// Settings for rendering images on request.
public struct RenderOptions: Sendable {
    /// The default and maximum time that a request waits for its image.
    public var wait = Duration.seconds(20)
    /// The formats that `format=auto` may select if the client names them in `Accept`; the first match is used. Other
    /// clients receive the format of the source.
    public var formats: [ImageFormat] = [.webp]

    /// Creates options with default values.
    public init() {}
}

/// A gray image of the requested size for clients that prefer images, sent if rendering fails.
///
/// The response has the status of the problem and is not cached. The header `Halcyon-Failure` contains the error code.
struct Placeholder {
    private let width: Int
    private let height: Int

    /// Creates a placeholder with the pixel size of the job's first variant, or a square if that has no display size.
    init(for job: Job) {
        guard let sizing = job.variants.first?.sizing, case .display(let display) = sizing.goal else {
            (width, height) = (100, 100)
            return
        }
        width = Self.side(display.width * sizing.screenScale)
        height = Self.side(display.height * sizing.screenScale)
    }

    private static func side(_ pixels: Double) -> Int { Int(min(max(pixels, 1), 4096)) }

    /// The SVG document. Its only variable parts are two numbers.
    private var svg: String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" viewBox="0 0 100 100" \
        preserveAspectRatio="xMidYMid slice"><rect x="-1000" y="-1000" width="2100" height="2100" fill="#e4e4e7"/>\
        <path d="M30 66l14-18 10 12 8-9 10 15zM62 38a5 5 0 1 1 0 .1" fill="#a1a1aa"/></svg>
        """
    }

    /// Returns the response of a problem with the placeholder as its body.
    func response(for problem: Problem) -> HTTPServer.Response {
        var response = problem.response
        response.headers["Content-Type"] = ImageFormat.svg.mediaType
        response.headers["Halcyon-Failure"] = problem.code ?? problem.kind.rawValue
        response.body = .bytes(Array(svg.utf8))
        return response
    }
}
