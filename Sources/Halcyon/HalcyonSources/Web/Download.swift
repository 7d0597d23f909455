import Curl
import HalcyonModel

extension WebProvider {
    /// A response with all of its bytes. Where it breaks off and its origin can give the rest, that is asked for: all of it
    /// within the time and the bytes that one transfer may take.
    ///
    /// - Parameter known: what there is already: a response may say that it still holds.
    /// - Throws: ``Failure``; `CancellationError`.
    func download(_ url: WebURL, unlike known: Validators) async throws -> HTTPResponse {
        let start = ContinuousClock.now
        var end = try await transfer(url) { request in
            request.headers["If-None-Match"] = known.etag
            request.headers["If-Modified-Since"] = known.lastModified
        }
        guard case .broken(var failure, let partial) = end else { return try end.get() }
        guard var begun = partial.flatMap({ Resumption($0) }) else { throw failure }
        for _ in 0..<options.resumptions {
            end = try await transfer(url) { request in
                request.timeout = options.timeout - start.duration(to: .now)
                request.ask(forTheRestOf: begun)
            }
            if case .broken(let again, _) = end { failure = again }
            guard let rest = end.response else { throw failure }
            switch begun.joined(with: rest, isWhole: end.isWhole) {
            case .whole(let response), .anew(let response): return response
            case .more(let longer): begun = longer
            case .useless: throw failure
            }
        }
        throw failure
    }
}

extension HTTPRequest {
    fileprivate mutating func ask(forTheRestOf resumption: Resumption) {
        for field in resumption.fields { headers[field.name] = field.value }
        maxBytes = max(1, maxBytes - resumption.response.body.count)
        // A part of something compressed is of no use.
        acceptsCompression = false
    }
}
