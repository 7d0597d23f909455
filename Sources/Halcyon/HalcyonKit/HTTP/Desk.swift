import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Asks a gateway, and asks again while nobody answers as they should.
final class Desk: Sendable {
    /// An answer that is no problem.
    struct Answer {
        let status: Int
        let body: Data
    }

    let options: ClientOptions
    private let base: URL
    private let key: String?
    private let connections: Connections

    init(_ base: URL, key: String?, options: ClientOptions) {
        (self.base, self.key, self.options) = (base, key, options)
        connections = Connections(options)
    }

    /// Begins an exchange; its answer is the caller's.
    func begin(_ request: Request, _ kind: Connections.Kind, limit: Int) throws -> Transfer {
        connections.begin(try request.url(at: base, key: key), kind, limit: limit)
    }

    /// Asks, for as long as ``ClientOptions/patience`` allows.
    /// - Parameters:
    ///   - limit: of the answer's body, in bytes.
    ///   - whole: the exchange is not broken off when the task is cancelled; only no other begins.
    /// - Throws: `HalcyonError`; `CancellationError`.
    func ask(
        _ request: Request, _ kind: Connections.Kind = .request, limit: Int? = nil, whole: Bool = false
    ) async throws -> Answer {
        var backOff = BackOff(base: .milliseconds(200), longest: options.longestPause)
        var end: ContinuousClock.Instant?
        while true {
            try Task.checkCancellation()
            do {
                guard whole else { return try await once(request, kind, limit) }
                return try await Task { try await self.once(request, kind, limit) }.value
            } catch let error as HalcyonError where error.isTransient {
                let now = ContinuousClock.now
                end = end ?? now + options.patience
                var asked = Duration.zero
                if case .problem(let problem) = error { asked = problem.retryAfter ?? .zero }
                let pause = backOff.next(atLeast: asked)
                guard now + pause < end! else { throw error }
                try await Task.sleep(for: pause)
            }
        }
    }

    private func once(_ request: Request, _ kind: Connections.Kind, _ limit: Int?) async throws -> Answer {
        let limit = limit ?? options.maximumAnswerBytes
        let transfer = try begin(request, kind, limit: limit)
        do {
            let head = try await transfer.head()
            let body = try await Self.body(of: transfer, limit: limit)
            guard (200..<300).contains(head.statusCode) else { throw Self.problem(head, body) }
            return Answer(status: head.statusCode, body: body)
        } catch let end as Transfer.End {
            throw Self.error(of: end, limit: limit)
        }
    }

    /// What is left of a body, at most `limit` bytes.
    static func body(of transfer: Transfer, limit: Int) async throws -> Data {
        var body = Data()
        while let part = try await transfer.next() {
            guard body.count + part.count <= limit else {
                transfer.cancel()
                throw HalcyonError.tooLarge(limit: limit)
            }
            body += part
        }
        return body
    }

    static func problem(_ head: HTTPURLResponse, _ body: Data) -> HalcyonError {
        .problem(
            Problem(
                status: head.statusCode, body: body,
                retryAfter: head.value(forHTTPHeaderField: "Retry-After")))
    }

    static func error(of end: Transfer.End, limit: Int) -> any Error {
        switch end {
        case .whole: HalcyonError.notUnderstood("an answer without a head")
        case .overflow: HalcyonError.tooLarge(limit: limit)
        case .failed(let error): HalcyonError.unreachable(reason(error))
        case .cancelled: CancellationError()
        }
    }

    /// What a connection said, in one line.
    private static func reason(_ error: any Error) -> String {
        let error = error as NSError
        let cause = (error.userInfo[NSUnderlyingErrorKey] as? NSError) ?? error
        return "\(cause.localizedDescription) (\(error.domain) \(error.code))"
    }
}
