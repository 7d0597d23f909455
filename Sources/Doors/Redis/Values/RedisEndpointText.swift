import PercentCoding

extension RedisEndpoint {
    /// Reads the text of an endpoint.
    /// - Throws: ``RedisError/Code/badEndpoint`` with what is wrong with it (never the password), also for TLS where this
    ///   build's hiredis has none.
    public init(_ text: String) throws(RedisError) {
        guard let colon = text.firstIndex(of: ":") else {
            throw .badAddress("no scheme; write redis://host:port or unix:/path")
        }
        let scheme = text[..<colon].lowercased()
        let rest = text[text.index(after: colon)...]
        if scheme == "unix" {
            self.init(.one(.unix(path: try Self.socketPath(rest))), login: Login(), sentinelLogin: Login())
            return
        }
        guard ["redis", "rediss"].contains(scheme.prefix { $0 != "+" }) else {
            throw .badAddress("unknown scheme \(scheme):")
        }
        guard rest.hasPrefix("//") else { throw .badAddress("\(scheme): must be followed by //host") }
        let usesTLS = scheme.hasPrefix("rediss")
        let parts = try AddressParts(rest.dropFirst(2))
        switch scheme.drop(while: { $0 != "+" }) {
        case "": self = try Self.oneServer(parts, usesTLS)
        case "+cluster": self = try Self.cluster(parts, usesTLS)
        case "+sentinel": self = try Self.behindSentinels(parts, usesTLS)
        default: throw .badAddress("unknown scheme \(scheme):")
        }
        if usesTLS && !Connection.hasTLS { throw .noTLS(scheme) }
    }

    private static func socketPath(_ rest: Substring) throws(RedisError) -> String {
        let path = rest.hasPrefix("//") ? rest.dropFirst(2) : rest
        guard path.hasPrefix("/") else { throw .badAddress("unix: must be followed by an absolute path") }
        // sun_path of unix(7) holds 108 bytes with the final zero.
        guard path.utf8.count < 108, !path.utf8.contains(0) else { throw .badAddress("the socket's path is too long") }
        return String(path)
    }

    private static func oneServer(_ parts: AddressParts, _ usesTLS: Bool) throws(RedisError) -> Self {
        try parts.refuseQuery()
        guard parts.hosts.count == 1 else {
            throw .badAddress("several hosts; write redis+cluster:// or redis+sentinel:// before them")
        }
        guard parts.path.count <= 1 else { throw .badAddress("more than a database behind the host") }
        let login = Login(
            credentials: parts.credentials, database: try parts.database(at: 0), usesTLS: usesTLS)
        return Self(.one(try parts.addresses(usually: 6379)[0]), login: login, sentinelLogin: Login())
    }

    private static func cluster(_ parts: AddressParts, _ usesTLS: Bool) throws(RedisError) -> Self {
        try parts.refuseQuery()
        guard parts.path.isEmpty || parts.path == ["0"] else { throw .badAddress("a cluster has database 0 alone") }
        let login = Login(credentials: parts.credentials, usesTLS: usesTLS)
        return Self(.cluster(try parts.addresses(usually: 6379)), login: login, sentinelLogin: Login())
    }

    private static func behindSentinels(_ parts: AddressParts, _ usesTLS: Bool) throws(RedisError) -> Self {
        guard let name = parts.path.first, let service = PercentEncoding.decode(name), !service.isEmpty else {
            throw .badAddress("no service; write redis+sentinel://host:port/service")
        }
        guard parts.path.count <= 2 else { throw .badAddress("more than a service and a database behind the hosts") }
        let login = Login(
            credentials: parts.credentials, database: try parts.database(at: 1), usesTLS: usesTLS)
        let sentinelLogin = Login(credentials: try parts.sentinelCredentials, usesTLS: usesTLS)
        return Self(
            .sentinels(try parts.addresses(usually: 26379), service: service), login: login,
            sentinelLogin: sentinelLogin)
    }
}

extension RedisError {
    fileprivate static func noTLS(_ scheme: String) -> RedisError {
        RedisError(
            .badEndpoint,
            """
            \(scheme):// needs hiredis 1.0 or later with hiredis_ssl, and this program was built with hiredis \
            \(RedisLibrary.version), which has no TLS: build it where they are (Debian 13: apt-get install libhiredis-dev \
            libssl-dev; else https://github.com/redis/hiredis, make USE_SSL=1), or give redis:// or unix: and let a tunnel such \
            as stunnel speak TLS
            """)
    }
}
