import Concurrency
import Formats
import Glibc
import HTTPServer
import JSON

/// Authenticates requests, checks their scopes and applies rate limits.
struct Authenticator: Sendable {
    private let options: AccessOptions
    private let signer: URLSigner
    private let crossOrigin: CrossOrigin
    private let rateLimiter: Lock<RateLimiterState>

    init(_ options: AccessOptions) {
        self.options = options
        signer = URLSigner(keys: options.urlKeys, requiresExpiry: options.requiresExpiry)
        crossOrigin = CrossOrigin(origins: options.origins)
        rateLimiter = Lock(RateLimiterState(options.limits))
    }

    /// Admits a request. A request that is not answered immediately also needs a permit.
    /// - Throws: ``Problem`` with status 429 above the rate limit, 401 without a valid key, 403 if the key lacks the
    ///   scope or the signature of the URL is invalid.
    func admit(
        _ request: HTTPServer.Request, to route: Route, at now: ContinuousClock.Instant
    ) throws(Problem) -> (caller: Principal, account: Principal.Account) {
        let key = route.scope == nil || options.keys.isEmpty ? nil : presentedKey(in: request)
        // Counted before authorization, so that guessing keys is rate-limited, too.
        let account = try count(
            key.map { .key($0.name) } ?? .init(remoteAddress: request.remoteAddress), at: now)
        let leave = try leave(request, route, key)
        let mayAdminister = leave == .open || leave == .key && key?.allows(.admin) == true
        let scopes = Set(Scope.allCases.filter { leave == .open || leave == .key && key?.allows($0) == true })
        return (Principal(name: key?.name, leave: leave, mayAdminister: mayAdminister, scopes: scopes), account)
    }

    /// Acquires a permit for an admitted request. It is released when it is no longer referenced.
    /// - Throws: ``Problem`` with status 429 if the caller has reached its limit.
    func acquirePermit(_ account: Principal.Account, _ kind: RateLimiterState.Kind) throws(Problem) -> ConcurrencyPermit
    {
        guard rateLimiter.withLock({ $0.acquirePermit(account, kind) }) else {
            throw Problem(.tooManyRequests, "too many concurrent requests", retryAfter: 1)
        }
        return ConcurrencyPermit { [rateLimiter] in rateLimiter.withLock { $0.releasePermit(account, kind) } }
    }

    private func count(_ account: Principal.Account, at now: ContinuousClock.Instant) throws(Problem)
        -> Principal.Account
    {
        let (account, wait) = rateLimiter.withLock { rateLimiter in
            let account = rateLimiter.account(of: account, at: now)
            return (account, rateLimiter.consumeToken(account, at: now))
        }
        guard let wait else { return account }
        let seconds = Int((wait / .seconds(1)).rounded(.up))
        throw Problem(.tooManyRequests, "rate limit exceeded", retryAfter: max(1, seconds))
    }

    private func leave(
        _ request: HTTPServer.Request, _ route: Route, _ key: APIKey?
    ) throws(Problem) -> Principal.Authorization {
        if let verify = route.verify {
            let leave = try verify(request)
            // Without keys the URL is unsigned. On an open gateway, pages of all origins may use it.
            if !options.asksForKeys, !options.isOpen { try rejectForeign(request, route) }
            return leave
        }
        guard let scope = route.scope else { return .open }
        // An invalid signature is rejected even if the request has a valid key.
        if route.acceptsSignature, URLSigner.isSigned(request) {
            return .signature(expires: try signer.check(request, at: .now))
        }
        if !options.asksForKeys {
            try rejectForeign(request, route)
            return .open
        }
        guard let key else {
            // The same response for a missing and for a wrong key.
            var problem = Problem(.unauthorized, "send a valid key in Authorization: Bearer or X-API-Key")
            problem.headers["WWW-Authenticate"] = "Bearer"
            throw problem
        }
        guard key.allows(scope) else { throw Problem(.forbidden, "this needs a key with the scope \(scope.rawValue)") }
        return .key
    }

    /// - Throws: ``Problem`` for a request with effects that a page of another origin has caused.
    private func rejectForeign(_ request: HTTPServer.Request, _ route: Route) throws(Problem) {
        guard route.hasEffects, crossOrigin.isForeign(request) else { return }
        throw Problem(.forbidden, "cross-origin requests are not allowed; add the origin to gateway.corsOrigins")
    }

    private func presentedKey(in request: HTTPServer.Request) -> APIKey? {
        guard let secret = Self.secret(in: request.headers) else { return nil }
        return options.keys.key(of: secret)
    }

    /// Returns the secret in `X-API-Key` or `Authorization: Bearer` (RFC 6750, 2.1). Returns nil if there is none, or
    /// if a header occurs more than once and is ambiguous.
    private static func secret(in headers: HTTPFields) -> String? {
        let own = headers.all("X-API-Key")
        if !own.isEmpty { return own.count == 1 ? own[0] : nil }
        let authorizations = headers.all("Authorization")
        guard authorizations.count == 1 else { return nil }
        let parts = authorizations[0].split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return String(parts[1].drop { $0 == " " })
    }
}

/// The caller of a request.
struct Principal: Hashable, Sendable {
    /// The unit that rate limits apply to.
    enum Account: Hashable, Sendable {
        /// All requests with the key of this name.
        case key(String)
        /// All requests from this address without a key.
        case address(String)
        /// All callers beyond ``CallerLimits/mostCallers``.
        case others

        /// Creates the account of a caller without a key.
        init(remoteAddress: String) { self = .address(Self.block(of: remoteAddress)) }

        /// Returns an IPv4 address unchanged, and the first 64 bits of an IPv6 address. Its owner can choose the other
        /// bits freely.
        private static func block(of text: String) -> String {
            var address = in6_addr()
            guard text.contains(":"), inet_pton(AF_INET6, text.prefix { $0 != "%" }.description, &address) == 1 else {
                return text
            }
            let bytes = withUnsafeBytes(of: address) { Array($0) }
            // An IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2).
            if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xff, bytes[11] == 0xff {
                return bytes[12...].map { "\($0)" }.joined(separator: ".")
            }
            let groups = stride(from: 0, to: 8, by: 2).map { (first: Int) -> String in
                String(UInt16(bytes[first]) << 8 | UInt16(bytes[first + 1]), radix: 16)
            }
            return groups.joined(separator: ":")
        }
    }

    /// The means by which a request was authorized.
    enum Authorization: Hashable, Sendable {
        /// No authorization was needed.
        case open
        /// An API key.
        case key
        /// A signed URL, with its expiry time in seconds since 1970; nil if it does not expire.
        case signature(expires: Int64?)
    }

    /// The name of the key; nil without one.
    let name: String?
    /// The means by which the request was authorized.
    let leave: Authorization
    /// True if the caller may access the jobs of all callers: with a key of the scope `admin`, or if no key is needed.
    let mayAdminister: Bool
    /// The scopes of the caller's key, or all if no key is needed.
    let scopes: Set<Scope>
}

extension Route {
    /// Returns the route of the name and the scopes of the caller's key, `GET /v1/access`.
    /// - Parameters:
    ///   - documentation: the address of the documentation; empty for none.
    ///   - servesMetrics: true if this address serves `/metrics`.
    static func access(documentation: String, servesMetrics: Bool) -> Route {
        Route("GET", "/v1/access", for: .read) { call in
            var writer = JSONWriter(capacity: 128)
            writer.object { writer in
                writer.member("key", call.caller.leave == .key ? call.caller.name : nil)
                writer.name("scopes")
                writer.array { writer in
                    for scope in Scope.allCases where call.caller.scopes.contains(scope) {
                        writer.value(scope.rawValue)
                    }
                }
                writer.member("documentation", documentation.isEmpty ? nil : documentation)
                writer.member("metrics", servesMetrics)
            }
            return HTTPServer.Response(status: 200, json: writer.bytes)
        }
    }
}

/// A permit of a concurrency limit. It is released explicitly, or when the last reference to it is dropped.
final class ConcurrencyPermit: Sendable {
    private let back: Lock<(@Sendable () -> Void)?>

    /// Creates a permit that was acquired.
    /// - Parameter back: called once, when the permit is released.
    init(givingBack back: @escaping @Sendable () -> Void) { self.back = Lock(back) }

    deinit { giveBack() }

    /// Releases the permit. Further calls have no effect.
    func giveBack() {
        let back = back.withLock { $0.take() }
        back?()
    }

    /// Returns the response to a request of this method. A streamed response holds the permit until it ends; any other
    /// response releases it immediately.
    func held(by response: HTTPServer.Response, to method: String) -> HTTPServer.Response {
        guard case .stream(let length, let produce) = response.body, method != "HEAD" else {
            giveBack()
            return response
        }
        var response = response
        response.body = .stream(length: length) { [self] writer in
            // Released before the client sees the end of the response, because it may send its next request
            // immediately.
            defer { giveBack() }
            try await produce(writer)
        }
        return response
    }
}
