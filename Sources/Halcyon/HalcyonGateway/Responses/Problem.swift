import Formats
import HTTPServer
import HalcyonModel
import JSON

/// An error response for the client: `application/problem+json` (RFC 9457). It reveals no internals of the server.
struct Problem: Error, Sendable {
    /// A kind of problem, with its HTTP status, type and title.
    enum Kind: String, CaseIterable, Sendable {
        case badRequest = "bad-request"
        case invalidJob = "invalid-job"
        case unauthorized
        case forbidden
        case notFound = "not-found"
        case methodNotAllowed = "method-not-allowed"
        case notAcceptable = "not-acceptable"
        case conflict
        case gone
        case preconditionFailed = "precondition-failed"
        case tooLarge = "too-large"
        case unsupportedMediaType = "unsupported-media-type"
        case rangeNotSatisfiable = "range-not-satisfiable"
        case misdirected
        case unprocessable = "unprocessable-image"
        case tooManyRequests = "too-many-requests"
        case badOrigin = "bad-origin"
        case unavailable
        case timeout

        /// The HTTP status of the response.
        var status: Int {
            switch self {
            case .badRequest, .invalidJob: 400
            case .unauthorized: 401
            case .forbidden: 403
            case .notFound: 404
            case .methodNotAllowed: 405
            case .notAcceptable: 406
            case .conflict: 409
            case .gone: 410
            case .preconditionFailed: 412
            case .tooLarge: 413
            case .unsupportedMediaType: 415
            case .rangeNotSatisfiable: 416
            case .misdirected: 421
            case .unprocessable: 422
            case .tooManyRequests: 429
            case .badOrigin: 502
            case .unavailable: 503
            case .timeout: 504
            }
        }

        /// The title that all problems of this kind share.
        var title: String {
            switch self {
            case .badRequest: "Invalid request"
            case .invalidJob: "Invalid job"
            case .unauthorized: "API key required"
            case .forbidden: "Forbidden"
            case .notFound: "Not found"
            case .methodNotAllowed: "Method not allowed"
            case .notAcceptable: "Not acceptable"
            case .conflict: "Conflict"
            case .gone: "Gone"
            case .preconditionFailed: "Precondition failed"
            case .tooLarge: "Content too large"
            case .unsupportedMediaType: "Unsupported media type"
            case .rangeNotSatisfiable: "Range not satisfiable"
            case .misdirected: "Misdirected request"
            case .unprocessable: "Image cannot be processed"
            case .tooManyRequests: "Too many requests"
            case .badOrigin: "Source cannot be loaded"
            case .unavailable: "Service unavailable"
            case .timeout: "Timeout"
            }
        }
    }

    let kind: Kind
    /// The HTTP status of the response. It differs from the status of the kind only for errors that the HTTP server
    /// detects itself.
    private(set) var status: Int
    /// The specific error, and what the client can do about it.
    let detail: String
    /// The error code of the job that the problem is about, if any (docs/events.md).
    var code: String?
    /// Seconds until the request may be retried, for `Retry-After`.
    var retryAfter: Int?
    /// Additional header fields of the response.
    var headers = HTTPFields()

    /// - Parameter detail: the specific error, and what the client can do about it.
    init(_ kind: Kind, _ detail: String, code: String? = nil, retryAfter: Int? = nil) {
        self.kind = kind
        status = kind.status
        self.detail = detail
        self.code = code
        self.retryAfter = retryAfter
    }

    /// The HTTP response that reports the problem.
    var response: HTTPServer.Response {
        var response = HTTPServer.Response(
            status: status, headers: ["Content-Type": "application/problem+json", "Cache-Control": "no-store"],
            body: .bytes(json))
        if let retryAfter { response.headers["Retry-After"] = String(retryAfter) }
        for field in headers.fields { response.headers.add(field.name, field.value) }
        return response
    }

    /// The members of RFC 9457, and `code`. A type is a relative reference that identifies the kind and cannot be
    /// dereferenced.
    var json: [UInt8] {
        var writer = JSONWriter(capacity: 256)
        writer.object { writer in
            writer.member("type", "/problems/\(kind.rawValue)")
            writer.member("title", kind.title)
            writer.member("status", Int64(status))
            writer.member("detail", detail)
            writer.member("code", code)
        }
        return writer.bytes
    }
}

extension Problem {
    /// Creates a problem from a request that the HTTP server rejected before it reached a handler.
    init(refused refusal: HTTPServer.HTTPRequestError) {
        let kind =
            Kind.allCases.first { $0.status == refusal.status } ?? (refusal.status < 500 ? .badRequest : .unavailable)
        self.init(kind, refusal.reason)
        status = refusal.status
    }
}

extension HTTPServer.Response {
    /// Creates a JSON response that must not be cached.
    init(status: Int, json: [UInt8], headers: HTTPFields = HTTPFields()) {
        self.init(
            status: status, headers: ["Content-Type": "application/json", "Cache-Control": "no-store"],
            body: .bytes(json))
        for field in headers.fields { self.headers.add(field.name, field.value) }
    }
}

extension Problem {
    /// Creates a problem from the error of a job that produced no image.
    /// - Parameters:
    ///   - code: the error code of the job; an unknown code of a later version counts as `internal`.
    ///   - message: the message of the event, written for the submitter of the job.
    init(failed code: String, _ message: String) {
        let kind: Kind =
            switch JobErrorCode(rawValue: code) ?? .internal {
            case .invalidJob, .unsupportedSource: .invalidJob
            case .blockedAddress, .forbidden: .forbidden
            case .notFound: .notFound
            case .gone: .gone
            case .httpError, .dnsError, .connectError, .originUnavailable, .tlsError, .tooManyRedirects, .providerError:
                .badOrigin
            case .tooLarge, .tooManyPixels, .unsupportedFormat, .corruptImage, .poison: .unprocessable
            case .timeout, .expired: .timeout
            case .internal: .unavailable
            }
        self.init(kind, message, code: code)
    }
}
