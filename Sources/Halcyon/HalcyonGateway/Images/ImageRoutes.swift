import HTTPServer
import HalcyonCluster
import HalcyonModel
import HalcyonResults
import Redis
import Telemetry

/// Serves `/v1/images/{key}`: stored results. A read does not count as a use of the result and never renders.
struct ImageRoutes: Sendable {
    let results: ResultCache
    /// The persistent result store; nil if there is none.
    let store: ResultStore?
    /// True if clients are sent to the public URLs of results in the store.
    let redirects: Bool
    let imageCache: ImageMemoryCache
    let headers: CommonHeaders
    /// The headers by which shared caches purge images.
    let cacheTags: CacheTagOptions
    let log: Log

    var all: [Route] {
        [
            Route("GET", "/v1/images/{key}", for: .read, acceptsSignature: true, atOnce: shelved) {
                try await answer($0)
            }
        ]
    }

    /// Answers requests for cached images immediately, and requests for the whole image with a shared response.
    private func shelved(_ call: RequestContext) -> HTTPServer.HandlerResult? {
        guard !redirects, let image = imageCache.image(call["key"], at: call.began), let body = image.stored.body else {
            return nil
        }
        let validity = ImageResponse.ImageCacheControl(
            image.remainingMilliseconds(at: call.began), leave: call.caller.leave)
        let answer = response(call["key"], image.stored, validity)
        if ImageResponse.isForAll(call.request), headers.areCommon(to: call.request),
            let shared = image.answer(
                validity,
                {
                    var response = answer.whole(body)
                    headers.add(to: &response, for: call.request)
                    return response
                })
        {
            return .cached(shared)
        }
        return answer.response(to: call.request, body).map { .immediate($0) }
    }

    private func answer(_ call: RequestContext) async throws(Problem) -> HTTPServer.Response {
        if redirects, let response = await redirect(call) { return response }
        guard let response = try await find(call["key"], call) else {
            throw Problem(.notFound, "there is no image with this key; it has expired or was never rendered")
        }
        return response
    }

    /// Returns a redirect to the public URL of a result (RFC 9110, 15.4.3); nil if it is not in the store. Clients may
    /// store it for a moment only, because the result may expire or be purged.
    private func redirect(_ call: RequestContext) async -> HTTPServer.Response? {
        guard let store, let key = ResultKey(call["key"]), let url = await store.publicURL(of: key) else { return nil }
        return HTTPServer.Response(status: 302, headers: ["Location": url, "Cache-Control": "no-cache"])
    }

    /// Returns the response with the image of a key; nil if there is none.
    /// - Parameter isNew: true if the image was rendered just now, so that a cached image is outdated.
    /// - Throws: ``Problem`` if Redis is unavailable.
    func find(_ key: String, _ call: RequestContext, isNew: Bool = false) async throws(Problem) -> HTTPServer.Response?
    {
        do throws(RedisError) {
            if isNew { imageCache.remove(key) }
            switch ImageKey(key) {
            case .result(let key): return try await result(key, call)
            case .handOff(let key): return try await handOff(key, call)
            case nil: return nil
            }
        } catch {
            log.debug("failed to read an image", ["error": "\(error)"])
            throw Problem(.unavailable, "images cannot be read at the moment; try again", retryAfter: 1)
        }
    }

    private func result(_ key: String, _ call: RequestContext) async throws(RedisError) -> HTTPServer.Response? {
        let needsBody = call.request.method != "HEAD" && call.request.headers["If-None-Match"] == nil
        guard let (answer, body) = try await look(key, call, withBody: needsBody) else { return nil }
        if let response = answer.response(to: call.request, body) { return response }
        // The bytes were not read, because a client with a cached image usually has the current one. It does not, so
        // they are read now.
        guard let (answer, body) = try await look(key, call, withBody: true) else { return nil }
        return answer.response(to: call.request, body)
    }

    private func look(
        _ key: String, _ call: RequestContext, withBody: Bool
    ) async throws(RedisError) -> (answer: ImageResponse, body: [UInt8]?)? {
        // Measured before the read, so that the remaining lifetime is never overstated.
        let start = ContinuousClock.now
        if let kept = imageCache.image(key, at: start) {
            let validity = ImageResponse.ImageCacheControl(
                kept.remainingMilliseconds(at: start), leave: call.caller.leave)
            return (response(key, kept.stored, validity), kept.stored.body)
        }
        var stored = try await results.stored(key, withBody: withBody)
        if stored == nil { stored = try await restore(key, withBody: withBody) }
        guard let stored else { return nil }
        if withBody { imageCache.insert(stored, as: key, at: start) }
        let validity = ImageResponse.ImageCacheControl(stored.remainingMilliseconds, leave: call.caller.leave)
        return (response(key, stored, validity), stored.body)
    }

    private func response(
        _ key: String, _ stored: ResultCache.Stored, _ validity: ImageResponse.ImageCacheControl
    ) -> ImageResponse {
        ImageResponse(stored.facts, validity, tags: cacheTags.fields(of: key, stored.tags))
    }

    /// Puts a result back into Redis from the result store; nil if it is not there.
    private func restore(_ key: String, withBody: Bool) async throws(RedisError) -> ResultCache.Stored? {
        guard let store, let key = ResultKey(key), let found = await store.find(key) else { return nil }
        do throws(RedisError) {
            // False if another request was faster, or if the result has been purged in the meantime.
            _ = try await results.restore(found)
        } catch {
            log.debug("failed to restore an image", ["error": "\(error)"])
        }
        return try await results.stored(key.description, withBody: withBody)
    }

    /// Returns the response with a hand-off image. GET consumes it; HEAD does not.
    private func handOff(_ key: String, _ call: RequestContext) async throws(RedisError) -> HTTPServer.Response? {
        if call.request.method == "HEAD" {
            guard let stored = try await results.stored(key, withBody: false) else { return nil }
            return once(stored.facts, nil)
        }
        guard let (body, facts) = try await results.read(key) else { return nil }
        return once(facts, body)
    }

    private func once(_ facts: ResultMetadata, _ body: [UInt8]?) -> HTTPServer.Response {
        ImageResponse.once(facts.format, size: (facts.width, facts.height), facts.bytes, body)
    }
}

/// The key of an image that clients may read: of a result or of a hand-off. Other Redis keys do not match.
enum ImageKey: Hashable {
    /// A result, which can be read repeatedly.
    case result(String)
    /// A hand-off image, which can be read once.
    case handOff(String)

    /// Parses a key; returns nil if it is neither.
    init?(_ text: String) {
        if ResultKey(text) != nil {
            self = .result(text)
        } else if ResultCache.isHandOffKey(text) {
            self = .handOff(text)
        } else {
            return nil
        }
    }
}
