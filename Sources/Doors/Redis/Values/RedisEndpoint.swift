/// Where a server is and how to be let in.
///
/// Written `redis://[user[:password]@]host[:port][/db]` (`redis://:password@host` for a password without a user),
/// `rediss://…` for TLS, or `unix:/path`. User and password are percent-encoded where they hold `:`, `@`, `/` or `%`.
/// Descriptions and mirrors of an endpoint show no password.
public struct RedisEndpoint: Hashable, Sendable {
    /// The place to connect to.
    public enum Place: Hashable, Sendable {
        /// A name or an IP address, and a port.
        case tcp(host: String, port: UInt16)
        /// A socket of this machine.
        case unix(path: String)
    }

    /// The place to connect to.
    public let place: Place
    /// Whether the connection is wrapped in TLS.
    public let usesTLS: Bool
    /// The ACL user; nil for the default one.
    public let user: String?
    /// The database number.
    public let database: Int
    let password: String?

    /// An endpoint on this machine, without a password: for tests and `dev` set-ups.
    public init(loopbackPort port: UInt16) {
        self.init(.tcp(host: "127.0.0.1", port: port))
    }

    private init(_ place: Place) {
        self.place = place
        (usesTLS, user, password, database) = (false, nil, nil, 0)
    }

    /// Reads the text of an endpoint.
    /// - Throws: ``RedisError/Code/badEndpoint`` with what is wrong with it (never the password), also for cluster and sentinel
    ///   addresses, and for TLS where this build's hiredis has none.
    public init(_ text: String) throws(RedisError) {
        func bad(_ reason: String) -> RedisError { RedisError(.badEndpoint, "not a Redis address: \(reason)") }
        guard let colon = text.firstIndex(of: ":") else {
            throw bad("no scheme; write redis://host:port or unix:/path")
        }
        let scheme = text[..<colon].lowercased()
        let rest = text[text.index(after: colon)...]
        switch scheme {
        case "redis", "rediss":
            guard rest.hasPrefix("//") else { throw bad("\(scheme): must be followed by //host") }
            try self.init(authorityAndPath: rest.dropFirst(2), usesTLS: scheme == "rediss", bad)
        case "unix":
            let path = rest.hasPrefix("//") ? rest.dropFirst(2) : rest
            guard path.hasPrefix("/") else { throw bad("unix: must be followed by an absolute path") }
            // sun_path of unix(7) holds 108 bytes with the final zero.
            guard path.utf8.count < 108, !path.utf8.contains(0) else { throw bad("the socket's path is too long") }
            self.init(.unix(path: String(path)))
        case "redis+cluster", "redis+sentinel", "rediss+cluster", "rediss+sentinel":
            throw RedisError(
                .badEndpoint, "\(scheme):// is not supported yet; give the address of one server, redis://host:port")
        default:
            throw bad("unknown scheme \(scheme):")
        }
    }

    private init(
        authorityAndPath text: Substring, usesTLS: Bool, _ bad: (String) -> RedisError
    ) throws(RedisError) {
        guard !text.contains(where: { "?#".contains($0) }) else { throw bad("it has a query or a fragment") }
        let slash = text.firstIndex(of: "/") ?? text.endIndex
        let (authority, path) = (text[..<slash], text[slash...].dropFirst())

        let at = authority.lastIndex(of: "@")
        (user, password) = try Self.credentials(at.map { authority[..<$0] }, bad)
        let (host, port) = try Self.hostAndPort(at.map { authority[authority.index(after: $0)...] } ?? authority, bad)
        place = .tcp(host: host, port: port)

        guard let database = path.isEmpty ? 0 : Int(path), (0..<1 << 31).contains(database) else {
            throw bad("the database must be a number")
        }
        self.database = database
        self.usesTLS = usesTLS
        if usesTLS && !Connection.hasTLS {
            throw RedisError(
                .badEndpoint, "rediss:// needs hiredis with TLS (hiredis_ssl), which this build of the program lacks")
        }
    }

    private static func credentials(
        _ text: Substring?, _ bad: (String) -> RedisError
    ) throws(RedisError) -> (user: String?, password: String?) {
        guard let text else { return (nil, nil) }
        guard let colon = text.firstIndex(of: ":") else {
            throw bad("a user without a password; write user:password@ or :password@")
        }
        guard let user = percentDecoded(text[..<colon]),
            let password = percentDecoded(text[text.index(after: colon)...])
        else {
            throw bad("the user or the password is not well percent-encoded")
        }
        guard !password.isEmpty else { throw bad("the password is empty") }
        return (user.isEmpty ? nil : user, password)
    }

    private static func hostAndPort(
        _ text: Substring, _ bad: (String) -> RedisError
    ) throws(RedisError) -> (String, UInt16) {
        let host: Substring
        var rest: Substring
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { throw bad("[ without ] in the host") }
            (host, rest) = (text[..<end].dropFirst(), text[end...].dropFirst())
        } else {
            let end = text.firstIndex(of: ":") ?? text.endIndex
            (host, rest) = (text[..<end], text[end...])
        }
        guard !host.isEmpty, !host.utf8.contains(0) else { throw bad("no host") }
        guard !rest.isEmpty else { return (String(host), 6379) }
        guard rest.removeFirst() == ":", let port = UInt16(rest), port > 0 else {
            throw bad("the port must be 1 to 65535")
        }
        return (String(host), port)
    }

    /// The text with its percent escapes (RFC 3986, 2.1) undone; nil when one is broken or the result is not UTF-8.
    private static func percentDecoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = Substring(text).utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, digits.first != UInt8(ascii: "+"), let value = UInt8(Substring(digits), radix: 16)
            else {
                return nil
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension RedisEndpoint: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The endpoint as it is written, with `***` for a password.
    public var description: String {
        switch place {
        case .unix(let path): return "unix:\(path)"
        case .tcp(let host, let port):
            let credentials = password == nil ? "" : "\(user ?? ""):***@"
            let address = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
            return "\(usesTLS ? "rediss" : "redis")://\(credentials)\(address)" + (database == 0 ? "" : "/\(database)")
        }
    }

    /// The same.
    public var debugDescription: String { description }

    /// Shows the description alone, so that `dump` gives no password away.
    public var customMirror: Mirror { Mirror(self, children: ["endpoint": description]) }
}
