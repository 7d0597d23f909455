import Formats
import HTTPServer
import HalcyonModel
import JSON

/// What is wrong, for whoever sent the request: `application/problem+json` (RFC 9457). It tells nothing of the server's insides.
struct Problem: Error, Sendable {
    /// A kind of problem: a status, a word for programs and words for people.
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
        case tooLarge = "too-large"
        case unsupportedMediaType = "unsupported-media-type"
        case rangeNotSatisfiable = "range-not-satisfiable"
        case misdirected
        case unprocessable = "unprocessable-image"
        case tooManyRequests = "too-many-requests"
        case badOrigin = "bad-origin"
        case unavailable
        case timeout

        /// The status of the answer.
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

        /// What all problems of this kind have in common.
        var title: String {
            switch self {
            case .badRequest: "The request makes no sense"
            case .invalidJob: "This is no valid job"
            case .unauthorized: "A key is needed"
            case .forbidden: "This is not allowed"
            case .notFound: "There is no such thing"
            case .methodNotAllowed: "Not with this method"
            case .notAcceptable: "Nothing that would be accepted can be made"
            case .conflict: "Too late"
            case .gone: "It is gone"
            case .tooLarge: "Too large"
            case .unsupportedMediaType: "Not in this media type"
            case .rangeNotSatisfiable: "There is no such part"
            case .misdirected: "This is no name of the gateway"
            case .unprocessable: "The image cannot be made"
            case .tooManyRequests: "Too much at once"
            case .badOrigin: "The source cannot be had"
            case .unavailable: "Not now"
            case .timeout: "It takes longer"
            }
        }
    }

    /// The kind.
    let kind: Kind
    /// The status of the answer; that of the kind, unless the door has a closer one.
    private(set) var status: Int
    /// What is wrong this time, and what would mend it.
    let detail: String
    /// The failure code of the job that this is about (docs/jobs.md), if it is about one.
    var code: String?
    /// Seconds until it may be tried again, for `Retry-After`.
    var retryAfter: Int?
    /// Further header fields of the answer.
    var headers = HTTPFields()

    /// - Parameter detail: what is wrong this time.
    init(_ kind: Kind, _ detail: String, code: String? = nil, retryAfter: Int? = nil) {
        self.kind = kind
        status = kind.status
        self.detail = detail
        self.code = code
        self.retryAfter = retryAfter
    }

    /// As an answer.
    var response: HTTPServer.Response {
        var response = HTTPServer.Response(
            status: status, headers: ["Content-Type": "application/problem+json", "Cache-Control": "no-store"],
            body: .bytes(json))
        if let retryAfter { response.headers["Retry-After"] = String(retryAfter) }
        for field in headers.fields { response.headers.add(field.name, field.value) }
        return response
    }

    /// The members of RFC 9457, and `code`. Types are relative references: they name the kind and lead nowhere.
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
    /// What the server refused before any handler saw it.
    init(refused refusal: HTTPServer.Refusal) {
        let kind =
            Kind.allCases.first { $0.status == refusal.status } ?? (refusal.status < 500 ? .badRequest : .unavailable)
        self.init(kind, refusal.reason)
        status = refusal.status
    }
}

extension HTTPServer.Response {
    /// JSON that is true now and perhaps not later.
    init(status: Int, json: [UInt8], headers: HTTPFields = HTTPFields()) {
        self.init(
            status: status, headers: ["Content-Type": "application/json", "Cache-Control": "no-store"],
            body: .bytes(json))
        for field in headers.fields { self.headers.add(field.name, field.value) }
    }
}

extension Problem {
    /// Why an image could not be made.
    /// - Parameters:
    ///   - code: one of the closed list of failure codes; what a later version adds counts as `internal`.
    ///   - message: what the event says. It was written for whoever submits jobs.
    init(failed code: String, _ message: String) {
        let kind: Kind =
            switch FailureCode(rawValue: code) ?? .internal {
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
