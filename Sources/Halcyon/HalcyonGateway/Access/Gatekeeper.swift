import Formats
import Glibc
import HTTPServer
import Threads

/// Says who may do what, and how much of it.
struct Gatekeeper: Sendable {
    private let options: AccessOptions
    private let signer: URLSigner
    private let crossOrigin: CrossOrigin
    private let books: Lock<CallerBooks>

    init(_ options: AccessOptions) {
        self.options = options
        signer = URLSigner(keys: options.urlKeys, requiresExpiry: options.requiresExpiry)
        crossOrigin = CrossOrigin(origins: options.origins)
        books = Lock(CallerBooks(options.limits))
    }

    /// Lets a request in. Unless it is answered at once it needs a place as well.
    /// - Throws: ``Problem``: 429 past the rate, 401 without a key or with a wrong one, 403 with one that may not do this, or by a URL whose
    ///   signature is not right.
    func admit(
        _ request: HTTPServer.Request, to route: Route, at now: ContinuousClock.Instant
    ) throws(Problem) -> (caller: Caller, account: Caller.Account) {
        let key = route.scope == nil || options.keys.isEmpty ? nil : presentedKey(in: request)
        // Before anything is refused: who tries keys is counted, too.
        let account = try count(
            key.map { .key($0.name) } ?? .init(remoteAddress: request.remoteAddress), at: now)
        let leave = try leave(request, route, key)
        let mayAdminister = leave == .open || leave == .key && key?.allows(.admin) == true
        return (Caller(name: key?.name, leave: leave, mayAdminister: mayAdminister), account)
    }

    /// A place for a request that has been let in, which is its own until nobody holds it any more.
    /// - Throws: ``Problem``: 429 when there are too many.
    func enter(_ account: Caller.Account, _ kind: CallerBooks.Kind) throws(Problem) -> TakenPlace {
        guard books.withLock({ $0.enter(account, kind) }) else {
            throw Problem(.tooManyRequests, "too many of your requests are under way at once", retryAfter: 1)
        }
        return TakenPlace { [books] in books.withLock { $0.leave(account, kind) } }
    }

    private func count(_ account: Caller.Account, at now: ContinuousClock.Instant) throws(Problem) -> Caller.Account {
        let (account, wait) = books.withLock { books in
            let account = books.account(of: account, at: now)
            return (account, books.take(account, at: now))
        }
        guard let wait else { return account }
        let seconds = Int((wait / .seconds(1)).rounded(.up))
        throw Problem(.tooManyRequests, "you have sent too many requests", retryAfter: max(1, seconds))
    }

    private func leave(
        _ request: HTTPServer.Request, _ route: Route, _ key: APIKey?
    ) throws(Problem) -> Caller.Leave {
        guard let scope = route.scope else { return .open }
        // What is signed must be signed well, whoever sends it.
        if route.acceptsSignature, URLSigner.isSigned(request) {
            return .signature(expires: try signer.check(request, at: .now))
        }
        if !options.asksForKeys {
            if route.hasEffects, crossOrigin.isForeign(request) {
                throw Problem(
                    .forbidden, "pages of other origins may not do this: gateway.origins names those that may")
            }
            return .open
        }
        guard let key else {
            // The same whether there was none or a wrong one.
            var problem = Problem(.unauthorized, "send a key that is known here, as Authorization: Bearer or X-API-Key")
            problem.headers["WWW-Authenticate"] = "Bearer"
            throw problem
        }
        guard key.allows(scope) else { throw Problem(.forbidden, "this needs a key with the scope \(scope.rawValue)") }
        return .key
    }

    private func presentedKey(in request: HTTPServer.Request) -> APIKey? {
        guard let secret = Self.secret(in: request.headers) else { return nil }
        return options.keys.key(of: secret)
    }

    /// What `X-API-Key` says, or `Authorization: Bearer` (RFC 6750, 2.1); nil for none, and for several, of which it would not be clear
    /// which counts.
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

/// Whoever makes a request.
struct Caller: Hashable, Sendable {
    /// Whom what is taken is counted to.
    enum Account: Hashable, Sendable {
        /// All who have the key of this name.
        case key(String)
        /// All who come from there without one.
        case address(String)
        /// All for whom there was no room.
        case others

        /// Who comes without a key.
        init(remoteAddress: String) { self = .address(Self.block(of: remoteAddress)) }

        /// An IPv4 address itself; of an IPv6 address the first 64 bits, since the others are its owner's to choose.
        private static func block(of text: String) -> String {
            var address = in6_addr()
            guard text.contains(":"), inet_pton(AF_INET6, text.prefix { $0 != "%" }.description, &address) == 1 else {
                return text
            }
            let bytes = withUnsafeBytes(of: address) { Array($0) }
            // An IPv4 address in IPv6's clothes (RFC 4291, 2.5.5.2).
            if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xff, bytes[11] == 0xff {
                return bytes[12...].map { "\($0)" }.joined(separator: ".")
            }
            return stride(from: 0, to: 8, by: 2)
                .map { String(Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]), radix: 16) }.joined(separator: ":")
        }
    }

    /// How it was let in.
    enum Leave: Hashable, Sendable {
        /// The gateway is open, or the thing is for everybody.
        case open
        /// By a key.
        case key
        /// By a signed URL, until then in seconds since 1970; nil for one without an end.
        case signature(expires: Int64?)
    }

    /// The name of the key; nil for who has none.
    let name: String?
    /// How it was let in.
    let leave: Leave
    /// Whether it may do what concerns the jobs of all: by a key of that scope, or where nobody needs a key.
    let mayAdminister: Bool
}

/// A place among others that are bounded in number. Whoever lets go of it last gives it back, however the request ends.
final class TakenPlace: Sendable {
    private let back: Lock<(@Sendable () -> Void)?>

    /// A place that has been taken.
    /// - Parameter back: called once, when it is given back.
    init(givingBack back: @escaping @Sendable () -> Void) { self.back = Lock(back) }

    deinit { giveBack() }

    /// Gives it back; a second time does nothing.
    func giveBack() {
        let back = back.withLock { $0.take() }
        back?()
    }

    /// The answer to a request of this method, which holds the place while it is streamed. An answer that is there as a whole holds none: what
    /// is left to do is the door's.
    func held(by response: HTTPServer.Response, to method: String) -> HTTPServer.Response {
        guard case .stream(let length, let produce) = response.body, method != "HEAD" else {
            giveBack()
            return response
        }
        var response = response
        response.body = .stream(length: length) { [self] writer in
            // Before the client sees the end, which may come again at once.
            defer { giveBack() }
            try await produce(writer)
        }
        return response
    }
}
