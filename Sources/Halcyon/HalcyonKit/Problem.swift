import Foundation

/// What a gateway says is wrong (RFC 9457).
public struct Problem: Error, Sendable, Equatable {
    /// Its kind; that of a later gateway may be none of these.
    public enum Kind: String, Sendable, Equatable, CaseIterable {
        /// See the gateway's description of its API.
        case badRequest = "bad-request"
        case invalidJob = "invalid-job"
        case unauthorized, forbidden
        case notFound = "not-found"
        case methodNotAllowed = "method-not-allowed"
        case notAcceptable = "not-acceptable"
        case conflict, gone
        case tooLarge = "too-large"
        case unsupportedMediaType = "unsupported-media-type"
        case rangeNotSatisfiable = "range-not-satisfiable"
        case misdirected
        case unprocessableImage = "unprocessable-image"
        case tooManyRequests = "too-many-requests"
        case badOrigin = "bad-origin"
        case unavailable, timeout
        /// None that is known here, or an answer that was no problem of a gateway's.
        case other
    }

    /// The kind.
    public let kind: Kind
    /// The status of the answer.
    public let status: Int
    /// What all of the kind have in common.
    public let title: String
    /// What is wrong this time, for people.
    public let detail: String
    /// Of a job that is none, or that failed.
    public let code: FailureCode?
    /// The time after which it may be tried again, where the gateway says so.
    public let retryAfter: Duration?

    /// Whether the same request may be answered otherwise in a while.
    public var isTransient: Bool { [408, 429, 502, 503, 504].contains(status) }

    private struct Body: Decodable {
        var type, title, detail, code: String?
        var status: Int?
    }

    /// - Parameters:
    ///   - status: of the answer; of a line of many, that in its body.
    ///   - body: the answer's body, whatever it is.
    init(status: Int?, body: Data, retryAfter: String? = nil) {
        let said = try? JSONDecoder().decode(Body.self, from: body)
        self.status = status ?? said?.status ?? 0
        kind = said?.type.flatMap { Kind(rawValue: String($0.split(separator: "/").last ?? "")) } ?? .other
        title = said?.title ?? "HTTP status \(self.status)"
        detail = said?.detail ?? "the answer says no more"
        code = said?.code.flatMap(FailureCode.init)
        self.retryAfter = retryAfter.flatMap { Int($0) }.flatMap { (0...86_400).contains($0) ? .seconds($0) : nil }
    }
}
