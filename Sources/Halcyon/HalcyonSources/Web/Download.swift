import Curl
import HalcyonModel
import Threads

extension WebProvider {
    /// A response with all of its bytes. Where it breaks off and its origin can give the rest, that is asked for: all of it
    /// within the time and the bytes that one transfer may take.
    ///
    /// - Parameters:
    ///   - isTrusted: whether the operator named the host, so that its addresses need not be public.
    ///   - known: what there is already: a response may say that it still holds.
    ///   - condition: how a request for the rest says of what.
    ///   - change: adds to each request what else is to be sent.
    /// - Throws: ``Failure``; `CancellationError`.
    func download(
        _ url: WebURL, isTrusted: Bool = false, unlike known: Validators,
        continuing condition: Resumption.Condition = .ifRange, _ change: (inout HTTPRequest) -> Void
    ) async throws -> HTTPResponse {
        let start = ContinuousClock.now
        func ask(for begun: Resumption?) async throws -> Transfer {
            try await transfer(url, isTrusted: isTrusted, after: begun?.response.body.count ?? 0) { request in
                change(&request)
                request.timeout = options.timeout - start.duration(to: .now)
                guard let begun else {
                    request.headers["If-None-Match"] = known.etag
                    request.headers["If-Modified-Since"] = known.lastModified
                    return
                }
                request.ask(forTheRestOf: begun)
            }
        }

        var end = try await ask(for: nil)
        guard case .broken(var failure, let partial) = end else { return try end.get() }
        guard var begun = partial.flatMap({ Resumption($0, condition) }) else { throw failure }
        for _ in 0..<options.resumptions {
            end = try await ask(for: begun)
            if case .broken(let again, _) = end { failure = again }
            guard let rest = end.response else { throw failure }
            switch begun.joined(with: rest, isWhole: end.isWhole) {
            case .whole(let response), .anew(let response): return response
            case .more(let longer): begun = longer
            case .changed:
                end = try await ask(for: nil)
                guard case .broken(let again, let partial) = end else { return try end.get() }
                failure = again
                guard let anew = partial.flatMap({ Resumption($0, condition) }) else { throw failure }
                begun = anew
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

/// The fetches under way in this process, by their keys, with their progress.
final class LoadMeters: Sendable {
    private let meters = Lock<[FetchKey: LoadMeter]>([:])

    /// Measures a fetch. After all its waiters have left, the next fetch of the key may start before this one has
    /// ended.
    func measure<Value>(_ key: FetchKey, _ body: () async throws -> Value) async throws -> Value {
        let meter = LoadMeter()
        meters.withLock { $0[key] = meter }
        defer { meters.withLock { if $0[key] === meter { $0[key] = nil } } }
        return try await LoadMeter.$current.withValue(meter, operation: body)
    }

    /// nil unless the fetch is under way.
    func progress(of key: FetchKey) -> LoadProgress? { meters.withLock { $0[key] }?.progress }
}

/// Counts the bytes of one load while it is under way.
///
/// It is a task-local value, so that it reaches the transfer without a parameter in every provider.
final class LoadMeter: Sendable {
    /// The meter of the load that the current task performs.
    @TaskLocal static var current: LoadMeter?

    private let state = Lock<LoadProgress?>(nil)

    /// nil before the first request.
    var progress: LoadProgress? { state.withLock { $0 } }

    /// Starts counting the response to one request.
    /// - Parameter begun: bytes received earlier, if the request is for the rest.
    /// - Returns: a callback for the transfer.
    func begin(after begun: Int) -> @Sendable (HTTPProgress) -> Void {
        state.withLock { $0 = $0 ?? LoadProgress(received: 0) }
        return { [state] news in
            // The body of a redirect or an error is no part of the source.
            guard [200, 203, 206].contains(news.status) else { return }
            // A server may answer a range request with the whole body.
            let begun = news.status == 206 ? begun : 0
            state.withLock {
                $0 = LoadProgress(received: begun + news.received, total: news.expected.map { begun + $0 })
            }
        }
    }
}
