import HTTPServer
import HalcyonCluster
import HalcyonModel
import Redis
import Telemetry

/// `/v1/images/{key}`: results as Redis has them. Reading one is no use of it and makes nothing.
struct ImageRoutes: Sendable {
    let results: ResultTier
    let shelf: ImageShelf
    let headers: CommonHeaders
    let log: Log

    var all: [Route] {
        [
            Route("GET", "/v1/images/{key}", for: .read, acceptsSignature: true, atOnce: shelved) {
                try await answer($0)
            }
        ]
    }

    /// What many ask for is given on the spot, and the same answer to all who ask for the whole of it.
    private func shelved(_ call: Call) -> HTTPServer.Reply? {
        guard let image = shelf.image(call["key"], at: call.began), let body = image.stored.body else { return nil }
        let validity = ImageAnswer.Validity(image.remainingMilliseconds(at: call.began), leave: call.caller.leave)
        let answer = ImageAnswer(image.stored.facts, validity)
        if ImageAnswer.isForAll(call.request), headers.areCommon(to: call.request),
            let shared = image.answer(
                validity,
                {
                    var response = answer.whole(body)
                    headers.add(to: &response, for: call.request)
                    return response
                })
        {
            return .shared(shared)
        }
        return answer.response(to: call.request, body).map { .now($0) }
    }

    private func answer(_ call: Call) async throws(Problem) -> HTTPServer.Response {
        guard let response = try await find(call["key"], call) else {
            throw Problem(.notFound, "there is no image of this key: it has expired, or was never made")
        }
        return response
    }

    /// The image of a key, as `call` wants it; nil when there is none.
    /// - Parameter isNew: it has been made this moment, so what was read before is not it.
    /// - Throws: ``Problem``: nobody can say now.
    func find(_ key: String, _ call: Call, isNew: Bool = false) async throws(Problem) -> HTTPServer.Response? {
        do throws(RedisError) {
            if isNew { shelf.remove(key) }
            switch ImageKey(key) {
            case .result(let key): return try await result(key, call)
            case .handOff(let key): return try await handOff(key, call)
            case nil: return nil
            }
        } catch {
            log.debug("an image could not be read", ["error": "\(error)"])
            throw Problem(.unavailable, "images cannot be had now; try again", retryAfter: 1)
        }
    }

    private func result(_ key: String, _ call: Call) async throws(RedisError) -> HTTPServer.Response? {
        let needsBody = call.request.method != "HEAD" && call.request.headers["If-None-Match"] == nil
        guard let (answer, body) = try await look(key, call, withBody: needsBody) else { return nil }
        if let response = answer.response(to: call.request, body) { return response }
        // Who has an image most often has this one, and its bytes were left where they are; this time it is another one.
        guard let (answer, body) = try await look(key, call, withBody: true) else { return nil }
        return answer.response(to: call.request, body)
    }

    private func look(
        _ key: String, _ call: Call, withBody: Bool
    ) async throws(RedisError) -> (answer: ImageAnswer, body: [UInt8]?)? {
        // From before it was asked for: what is left of its life is then no more than it is.
        let start = ContinuousClock.now
        if let kept = shelf.image(key, at: start) {
            let validity = ImageAnswer.Validity(kept.remainingMilliseconds(at: start), leave: call.caller.leave)
            return (ImageAnswer(kept.stored.facts, validity), kept.stored.body)
        }
        guard let stored = try await results.stored(key, withBody: withBody) else { return nil }
        if withBody { shelf.put(stored, as: key, at: start) }
        let validity = ImageAnswer.Validity(stored.remainingMilliseconds, leave: call.caller.leave)
        return (ImageAnswer(stored.facts, validity), stored.body)
    }

    /// It is there for one GET; HEAD leaves it.
    private func handOff(_ key: String, _ call: Call) async throws(RedisError) -> HTTPServer.Response? {
        if call.request.method == "HEAD" {
            guard let stored = try await results.stored(key, withBody: false) else { return nil }
            return ImageAnswer.once(stored.facts.format, stored.facts.bytes, nil)
        }
        guard let (body, facts) = try await results.read(key) else { return nil }
        return ImageAnswer.once(facts.format, facts.bytes, body)
    }
}

/// The name of an image that may be asked for: of a result, or of a hand-off. Nothing else that Redis holds has such a name.
enum ImageKey: Hashable {
    /// A result, which stays.
    case result(String)
    /// What is given once.
    case handOff(String)

    /// Nil for what is neither.
    init?(_ text: String) {
        if ResultKey(text) != nil {
            self = .result(text)
        } else if ResultTier.isHandOffKey(text) {
            self = .handOff(text)
        } else {
            return nil
        }
    }
}
