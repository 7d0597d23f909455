import HTTPServer
import HalcyonCluster
import HalcyonModel
import HalcyonWire
import Kafka

/// `GET /v1/render`: an image by the query of its URL, made when it is not there.
struct RenderRoutes: Sendable {
    let desk: JobDesk
    let feed: EventFeed
    let images: ImageRoutes
    let results: ResultTier
    let control: ControlPublisher
    let options: RenderOptions

    var all: [Route] {
        [Route("GET", "/v1/render", for: .submit, acceptsSignature: true, startsJobs: true, answer: render)]
    }

    private func render(_ call: Call) async throws -> HTTPServer.Response {
        let accepts = Acceptance(call.request.headers["Accept"])
        let query = try RenderQuery(call.request.query)
        guard accepts.takesImages else { throw Problem(.notAcceptable, "Accept: an image is all there is here") }
        let prepared = try prepare(query, accepts)
        var response: HTTPServer.Response
        do {
            response = try await image(of: prepared, query, call)
        } catch let problem as Problem where accepts.prefersImages {
            response = Placeholder(for: prepared.job).response(for: problem)
        }
        response.headers.add("Vary", "Accept")
        return response
    }

    private func prepare(_ query: RenderQuery, _ accepts: Acceptance) throws(Problem) -> PreparedJob {
        var draft = query.draft
        // Somebody waits.
        if draft["priority"] == nil { draft.set("priority", Lane.high.rawValue) }
        let isAuto = draft["format"].map { $0 == "auto".json } ?? true
        if isAuto, let format = options.formats.first(where: accepts.names) { draft.set("format", format.rawValue) }
        return try desk.prepare(draft, naming: "render")
    }

    private func image(of prepared: PreparedJob, _ query: RenderQuery, _ call: Call) async throws -> HTTPServer.Response
    {
        if prepared.job.cache.looksAtResults, let there = await stored(prepared, call) { return there }
        // Before the job is sent: its end is not missed.
        let waiter = feed.wait(for: prepared.job.id)
        defer { waiter.leave() }
        let wait = query.wait?.duration(atMost: options.wait) ?? options.wait
        try await desk.send(
            prepared, traceparent: call.traceparent, by: desk.latest(for: call),
            patience: Patience(wait - call.began.duration(to: .now)))
        // From when it was asked for: what the brokers took counts, too.
        let limit = wait - call.began.duration(to: .now)
        let end: EndWaiter.End?
        do throws(CancellationError) {
            end = try await waiter.end(within: limit)
        } catch {
            guard Task.isCancelled else {
                throw Problem(.unavailable, "the gateway stops, and the image is being made; ask again", retryAfter: 1)
            }
            // Nobody waits any more. Others who want the same image are not concerned.
            let id = prepared.job.id
            // A job that is not cancelled is only done in vain.
            Task { try? await control.publish(.cancel(id)) }
            throw error
        }
        guard let end else {
            throw Problem(.timeout, "the image is not ready yet, and is being made; ask again", retryAfter: 2)
        }
        return try await answer(end.event, call)
    }

    /// The image as it is there; nil when it is not, or cannot be read: then a worker looks.
    private func stored(_ prepared: PreparedJob, _ call: Call) async -> HTTPServer.Response? {
        let key = prepared.keys[0].description
        // A job may let the result live longer, which is a worker's to do; and what cannot be read here a worker looks
        // at.
        guard !ResultRule(maxAge: prepared.job.maxAge).canExtend,
            let response = try? await images.find(key, call)
        else { return nil }
        results.used(CollectionOfOne(key), of: prepared.job.tenant)
        return response
    }

    private func answer(_ event: EventView, _ call: Call) async throws -> HTTPServer.Response {
        switch event.ending {
        case .ready(let outputs, _):
            guard let output = outputs.first, let format = output.format else {
                throw Problem(.unavailable, "the image is of a kind that this gateway does not know")
            }
            if let data = output.data { return ImageAnswer.once(format, data.count, data) }
            guard let response = try await images.find(output.key, call, isNew: true) else {
                throw Problem(.unavailable, "the image was gone before it could be read; ask again", retryAfter: 1)
            }
            return response
        case .failed(let code, let message): throw Problem(failed: code, message)
        case .cancelled, .superseded, nil: throw Problem(.gone, "the job was cancelled")
        }
    }
}

/// How images are rendered for whoever waits for them.
public struct RenderOptions: Sendable {
    /// How long a request waits for its image unless it says so, and the longest it may say.
    public var wait = Duration.seconds(20)
    /// What `format=auto` may become for a client that names it in `Accept`, the first that it names; others get what the source is.
    public var formats: [ImageFormat] = [.webp]

    /// The defaults.
    public init() {}
}

/// What stands in the place of an image that could not be made, for a client that wants an image: grey, and as large as the image would be.
///
/// It comes with the status of what is wrong and is stored nowhere; the failure code stands in `Halcyon-Failure`.
struct Placeholder {
    private let width: Int
    private let height: Int

    /// Of the pixels of the job's first variant where it has a display; else a square.
    init(for job: Job) {
        guard let sizing = job.variants.first?.sizing, case .display(let display) = sizing.goal else {
            (width, height) = (100, 100)
            return
        }
        width = Self.side(display.width * sizing.screenScale)
        height = Self.side(display.height * sizing.screenScale)
    }

    private static func side(_ pixels: Double) -> Int { Int(min(max(pixels, 1), 4096)) }

    /// The picture. Nothing in it comes from outside but two numbers.
    private var svg: String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" viewBox="0 0 100 100" \
        preserveAspectRatio="xMidYMid slice"><rect x="-1000" y="-1000" width="2100" height="2100" fill="#e4e4e7"/>\
        <path d="M30 66l14-18 10 12 8-9 10 15zM62 38a5 5 0 1 1 0 .1" fill="#a1a1aa"/></svg>
        """
    }

    /// In place of a problem's own answer.
    func response(for problem: Problem) -> HTTPServer.Response {
        var response = problem.response
        response.headers["Content-Type"] = ImageFormat.svg.mediaType
        response.headers["Halcyon-Failure"] = problem.code ?? problem.kind.rawValue
        response.body = .bytes(Array(svg.utf8))
        return response
    }
}
