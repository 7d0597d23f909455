import Foundation

/// An error of a client.
public enum HalcyonError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The gateway refused the request.
    case problem(HalcyonClient.ProblemDetails)
    /// The job failed.
    case jobFailed(ImageEvent.Failed)
    /// The job was cancelled.
    case jobCancelled(id: String)
    /// The job was superseded by one of a higher generation for the same slot.
    case jobSuperseded(id: String, by: Int)
    /// The job did not end within ``HalcyonClient/Configuration/jobTimeout``.
    case timedOut(id: String)
    /// The gateway could not be reached. The text is the last error of the connection.
    case connectionFailed(String)
    /// The response is larger than the limit, in bytes.
    case tooLarge(limit: Int)
    /// The response is not one of a gateway that this version understands.
    case invalidResponse(String)
    /// The image was uploaded to a URL that only the submitter of the job knows. The address is its scheme, host and
    /// port.
    case notDelivered(address: String)
    /// A value of the app is invalid, such as a BlurHash. Nothing was sent.
    case invalidRequest(String)

    /// A description of the error for people.
    public var description: String {
        switch self {
        case .problem(let problem): "\(problem.title) (\(problem.status)): \(problem.detail)"
        case .jobFailed(let failure): "\(failure.code.rawValue): \(failure.message)"
        case .jobCancelled(let id): "job \(id) was cancelled"
        case .jobSuperseded(let id, let generation): "job \(id) was superseded by generation \(generation)"
        case .timedOut(let id): "job \(id) did not end in time"
        case .connectionFailed(let reason): "connection to the gateway failed: \(reason)"
        case .tooLarge(let limit): "response is larger than \(limit) bytes"
        case .invalidResponse(let reason): "invalid response: \(reason)"
        case .notDelivered(let address): "the image was uploaded to a URL of \(address) that only the submitter knows"
        case .invalidRequest(let reason): "invalid request: \(reason)"
        }
    }

    /// True if the same request or job may succeed later.
    public var isTransient: Bool {
        switch self {
        case .problem(let problem): problem.isTransient
        case .jobFailed(let failure): failure.retryable
        case .connectionFailed, .timedOut: true
        default: false
        }
    }

    /// True for the failure of a job that a request to `/v1/render` has awaited. The cluster has retried it already.
    var isRenderingFailure: Bool { if case .problem(let problem) = self { problem.code != nil } else { false } }

    /// True if a request to `/v1/render` was answered before the image was ready.
    var isRenderingTimeout: Bool {
        if case .problem(let problem) = self { problem.kind == .timeout && problem.code == nil } else { false }
    }

    /// The shortest time after which the gateway allows a retry.
    var retryAfter: Duration? { if case .problem(let problem) = self { problem.retryAfter } else { nil } }
}

extension HalcyonError: LocalizedError {
    /// A description of the error for people.
    public var errorDescription: String? { description }
}

extension HalcyonClient {
    /// The reason for which a gateway refused a request (RFC 9457).
    public struct ProblemDetails: Error, Sendable, Equatable {
        /// The kind of problem.
        public let kind: Kind
        /// The status code of the response.
        public let status: Int
        /// A summary that is the same for all problems of this kind.
        public let title: String
        /// A description of this problem for people.
        public let detail: String
        /// The failure code of an invalid or failed job.
        public let code: FailureCode?
        /// The time after which a retry makes sense, if the gateway gave one.
        public let retryAfter: Duration?

        /// True if the same request may succeed later.
        public var isTransient: Bool { [408, 429, 502, 503, 504].contains(status) }

        /// A kind of problem: the last part of its type URI, which the gateway's API description lists.
        public struct Kind: RawRepresentable, Sendable, Hashable {
            /// The name of the kind.
            public let rawValue: String
            /// Creates a kind that has no static member here.
            public init(rawValue: String) { self.rawValue = rawValue }

            /// The request or its credentials are wrong.
            public static let badRequest = Self(rawValue: "bad-request"), invalidJob = Self(rawValue: "invalid-job"),
                unauthorized = Self(rawValue: "unauthorized"), forbidden = Self(rawValue: "forbidden"),
                methodNotAllowed = Self(rawValue: "method-not-allowed"),
                notAcceptable = Self(rawValue: "not-acceptable"),
                preconditionFailed = Self(rawValue: "precondition-failed"), tooLarge = Self(rawValue: "too-large"),
                unsupportedMediaType = Self(rawValue: "unsupported-media-type"),
                rangeNotSatisfiable = Self(rawValue: "range-not-satisfiable"),
                misdirected = Self(rawValue: "misdirected")
            /// The job or image does not exist, has changed or cannot be made.
            public static let notFound = Self(rawValue: "not-found"), gone = Self(rawValue: "gone"),
                conflict = Self(rawValue: "conflict"), unprocessableImage = Self(rawValue: "unprocessable-image"),
                badOrigin = Self(rawValue: "bad-origin")
            /// The gateway is overloaded or unavailable.
            public static let tooManyRequests = Self(rawValue: "too-many-requests"),
                unavailable = Self(rawValue: "unavailable"), timeout = Self(rawValue: "timeout")
            /// The response does not say: RFC 9457's default.
            public static let blank = Self(rawValue: "about:blank")
        }

        private struct Body: Decodable {
            var type, title, detail, code: String?
            var status: Int?
        }

        /// Reads the body of a response, whatever it is.
        /// - Parameter status: The status of the response; nil to use that in the body.
        init(status: Int?, body: Data, retryAfter: String? = nil) {
            // A proxy's answer has the status alone.
            let problem = try? JSONDecoder().decode(Body.self, from: body)
            self.status = status ?? problem?.status ?? 0
            kind = problem?.type?.split(separator: "/").last.map { Kind(rawValue: String($0)) } ?? .blank
            title = problem?.title ?? "HTTP status \(self.status)"
            detail = problem?.detail ?? "the response has no details"
            code = problem?.code.map(FailureCode.init)
            self.retryAfter = retryAfter.flatMap { Int($0) }.flatMap { (0...86_400).contains($0) ? .seconds($0) : nil }
        }
    }
}
