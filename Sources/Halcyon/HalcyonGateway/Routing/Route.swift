import HTTPServer

/// A route: a method, a path pattern, the required scope, and the handler.
struct Route: CustomStringConvertible, Sendable {
    /// A segment of a path pattern.
    enum Segment: Hashable, Sendable {
        /// A literal segment.
        case word(String)
        /// A parameter, which matches any non-empty segment.
        case name(String)
        /// The rest of the path, of at least one segment, except paths that begin like those of Halcyon.
        case rest(String)
    }

    /// Authorizes a request by its URL.
    typealias Verification = @Sendable (HTTPServer.Request) throws(Problem) -> Principal.Authorization

    /// Handles a request. ``Router`` converts errors into responses.
    typealias RouteHandler = @Sendable (RequestContext) async throws -> HTTPServer.Response
    /// Handles a request immediately on the server's thread; returns nil if it cannot.
    typealias AtOnce = @Sendable (RequestContext) -> HTTPServer.HandlerResult?

    let method: String
    let path: [Segment]
    /// The required scope; nil for a public route.
    let scope: Scope?
    /// True if a signed URL also authorizes the request.
    let acceptsSignature: Bool
    /// Authorizes requests instead of ``scope``; nil if the scope applies.
    let verify: Verification?
    /// True if the route submits jobs. Its requests are traced.
    let startsJobs: Bool
    /// The kind of permit that a request needs.
    let kind: RateLimiterState.Kind
    /// A handler for requests that need no work. It is called before ``answer`` and needs no permit.
    let atOnce: AtOnce?
    let answer: RouteHandler

    /// - Parameters:
    ///   - path: a pattern such as `/v1/jobs/{id}`, or `/images/{path...}` for all paths below `/images`.
    ///   - scope: the required scope; nil for a public route.
    ///   - verify: authorizes requests instead of the scope.
    init(
        _ method: String, _ path: String, for scope: Scope?, acceptsSignature: Bool = false, startsJobs: Bool = false,
        kind: RateLimiterState.Kind = .request, verify: Verification? = nil, atOnce: AtOnce? = nil,
        answer: @escaping RouteHandler
    ) {
        self.verify = verify
        self.method = method
        self.atOnce = atOnce
        self.acceptsSignature = acceptsSignature
        self.startsJobs = startsJobs
        self.kind = kind
        self.path = path.split(separator: "/").map { part in
            guard part.hasPrefix("{") else { return .word(String(part)) }
            return part.hasSuffix("...}")
                ? .rest(String(part.dropFirst().dropLast(4))) : .name(String(part.dropFirst().dropLast()))
        }
        self.scope = scope
        self.answer = answer
    }

    /// True if the route has side effects.
    var hasEffects: Bool { startsJobs || method != "GET" }

    /// The method and the pattern, such as `GET /v1/jobs/{id}`.
    var description: String { "\(method) \(template)" }

    /// The pattern, such as `/v1/jobs/{id}`.
    var template: String {
        let parts = path.map { segment in
            switch segment {
            case .word(let word): "/\(word)"
            case .name(let name): "/{\(name)}"
            case .rest(let name): "/{\(name)...}"
            }
        }
        return parts.isEmpty ? "/" : parts.joined()
    }

    /// Returns the values of the parameters if the path matches.
    func values(in given: [String]) -> [String: String]? {
        if case .rest? = path.last {
            guard given.count >= path.count, given.first.map(URLPrefix.reserved.contains) == false else { return nil }
        } else {
            guard given.count == path.count else { return nil }
        }
        var values: [String: String] = [:]
        for (segment, part) in zip(path, given) {
            switch segment {
            case .word(let word): if word != part { return nil }
            case .name(let name):
                if part.isEmpty { return nil }
                values[name] = part
            case .rest(let name): values[name] = given[(path.count - 1)...].joined(separator: "/")
            }
        }
        return values
    }
}

/// A request that matched a route, with its caller.
struct RequestContext: Sendable {
    let request: HTTPServer.Request
    /// The values of the path parameters.
    let values: [String: String]
    let caller: Principal
    /// The time at which the request was admitted, shortly after its head was received.
    let began: ContinuousClock.Instant
    /// The trace of the request; nil if tracing is off or the route submits no jobs.
    let trace: RequestTrace?

    /// Returns the context of a request whose signed URL expires at this time, in seconds since 1970; nil for never.
    func expiring(at expires: Int64?) -> RequestContext {
        let caller = Principal(
            name: caller.name, leave: .signature(expires: expires), mayAdminister: caller.mayAdminister,
            scopes: caller.scopes)
        return RequestContext(request: request, values: values, caller: caller, began: began, trace: trace)
    }

    /// The `traceparent` of the submitted jobs: that of the request's span, or the header of the request.
    var traceparent: String? { trace?.context.traceparent ?? request.headers.first("traceparent") }

    /// The media type of the body in lower case without parameters; empty if there is none. Routes with side effects
    /// require it: pages of other sites can make browsers send a body without a type or as a form, but not as JSON
    /// (Fetch Standard, 2.2.2).
    var bodyType: String {
        request.headers.first("Content-Type").map { $0.prefix { !"; ".contains($0) }.lowercased() } ?? ""
    }

    /// Returns the whole number in a query parameter; nil without it.
    /// - Throws: ``Problem`` of the kind `badRequest` for anything else.
    func number(_ name: String, in range: ClosedRange<Int>) throws(Problem) -> Int? {
        guard let text = request.value(of: name) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw Problem(.badRequest, "\(name) must be a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// Checks that the body is JSON.
    /// - Throws: ``Problem``.
    func requireJSON() throws(Problem) {
        guard bodyType == "application/json" else {
            throw Problem(.unsupportedMediaType, "unsupported Content-Type; use application/json")
        }
    }

    /// Returns the value of a path parameter.
    subscript(name: String) -> String { values[name] ?? "" }
}

/// The parameter `wait`: the time in seconds that a client is willing to wait. A pure value.
struct WaitParameter: Hashable {
    private let seconds: Double

    /// - Parameter text: a decimal number in JSON syntax, such as 10, 0.5 or 1e3.
    /// - Throws: ``Problem`` of the kind `badRequest` for anything else.
    init(_ text: String) throws(Problem) {
        // Double also accepts words and hexadecimal digits.
        let isDecimal = text.utf8.allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
        guard isDecimal, let seconds = Double(text), seconds >= 0 else {
            throw Problem(.badRequest, "wait must be a number of seconds, such as 10")
        }
        self.seconds = seconds
    }

    /// Returns the duration, limited to `longest`. The limit avoids a trap, because `Duration` cannot represent all
    /// values.
    func duration(upTo longest: Duration) -> Duration {
        seconds < longest / .seconds(1) ? .seconds(seconds) : longest
    }
}
