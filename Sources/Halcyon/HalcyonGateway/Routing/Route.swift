import HTTPServer

/// One thing that can be asked for: a method, a path, who may, and how it is answered.
struct Route: CustomStringConvertible, Sendable {
    /// A part of a path.
    enum Segment: Hashable, Sendable {
        /// This word.
        case word(String)
        /// Anything but nothing, which the answer is handed.
        case name(String)
    }

    /// Answers a request. What it throws is answered by ``Router``.
    typealias Answer = @Sendable (Call) async throws -> HTTPServer.Response
    /// Answers a request at once where it can, on the server's thread; nil where it cannot.
    typealias AtOnce = @Sendable (Call) -> HTTPServer.Reply?

    let method: String
    let path: [Segment]
    /// What a key must allow; nil for what everybody may.
    let scope: Scope?
    /// Whether a signed URL lets in as well.
    let acceptsSignature: Bool
    /// Whether it puts jobs on their way, which traces say.
    let startsJobs: Bool
    /// Which of the caller's places it takes.
    let kind: CallerBooks.Kind
    /// What needs no work; asked before ``answer``, and for no place.
    let atOnce: AtOnce?
    let answer: Answer

    /// - Parameters:
    ///   - path: as in `/v1/jobs/{id}`.
    ///   - scope: nil for what everybody may.
    init(
        _ method: String, _ path: String, for scope: Scope?, acceptsSignature: Bool = false, startsJobs: Bool = false,
        kind: CallerBooks.Kind = .request, atOnce: AtOnce? = nil, answer: @escaping Answer
    ) {
        self.method = method
        self.atOnce = atOnce
        self.acceptsSignature = acceptsSignature
        self.startsJobs = startsJobs
        self.kind = kind
        self.path = path.split(separator: "/").map { part in
            part.hasPrefix("{") ? .name(String(part.dropFirst().dropLast())) : .word(String(part))
        }
        self.scope = scope
        self.answer = answer
    }

    /// Whether it does more than to tell what is there.
    var hasEffects: Bool { startsJobs || method != "GET" }

    /// As in `GET /v1/jobs/{id}`.
    var description: String { "\(method) \(template)" }

    /// As in `/v1/jobs/{id}`.
    var template: String {
        let parts = path.map { segment in
            switch segment {
            case .word(let word): "/\(word)"
            case .name(let name): "/{\(name)}"
            }
        }
        return parts.isEmpty ? "/" : parts.joined()
    }

    /// The names' values, when the path is of this shape.
    func values(in given: [String]) -> [String: String]? {
        guard given.count == path.count else { return nil }
        var values: [String: String] = [:]
        for (segment, part) in zip(path, given) {
            switch segment {
            case .word(let word): if word != part { return nil }
            case .name(let name):
                if part.isEmpty { return nil }
                values[name] = part
            }
        }
        return values
    }
}

/// A request that has found its route, and whoever makes it.
struct Call: Sendable {
    let request: HTTPServer.Request
    /// The values of the path's names.
    let values: [String: String]
    let caller: Caller
    /// When it was let in: about when its head was there.
    let began: ContinuousClock.Instant
    /// What is recorded of it as a trace, where jobs' traces are and it makes some.
    let trace: RequestTrace?

    /// The `traceparent` of the jobs that it makes: its own place, or as it brought it.
    var traceparent: String? { trace?.context.traceparent ?? request.headers.first("traceparent") }

    /// The media type of the body, in lower case and without its parameters; empty where none is named. A page of another site can have a browser
    /// send a body without one, or as a form, and not as JSON (Fetch, 2.2.2): so what changes anything asks for it.
    var bodyType: String {
        request.headers.first("Content-Type").map { $0.prefix { !"; ".contains($0) }.lowercased() } ?? ""
    }

    /// The value of a name that the route's path has.
    subscript(name: String) -> String { values[name] ?? "" }
}

/// How long a request asks to wait: the parameter `wait`, in seconds. A pure value.
struct Wait: Hashable {
    private let seconds: Double

    /// - Parameter text: a decimal number, as JSON writes them: 10, 0.5, 1e3.
    /// - Throws: ``Problem`` of the kind `badRequest` for anything else.
    init(_ text: String) throws(Problem) {
        // Double takes words and hexadecimal digits as well.
        let isDecimal = text.utf8.allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
        guard isDecimal, let seconds = Double(text), seconds >= 0 else {
            throw Problem(.badRequest, "wait: a number of seconds, such as 10")
        }
        self.seconds = seconds
    }

    /// As a duration no longer than `longest`, however long it is: `Duration` itself traps on what it cannot hold.
    func duration(atMost longest: Duration) -> Duration {
        seconds < longest / .seconds(1) ? .seconds(seconds) : longest
    }
}
