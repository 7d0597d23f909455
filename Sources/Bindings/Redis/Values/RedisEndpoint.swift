import Formats

/// The location and credentials of Redis: one server, a cluster, or a primary that sentinels name.
///
/// - `redis://[user[:password]@]host[:port][/db]`: one server (`redis://:password@host` for a password without a user)
/// - `unix:/path`: one server on this machine
/// - `redis+cluster://[user:password@]host[:port][,host[:port]…]`: a Redis Cluster, with its seed nodes
/// - `redis+sentinel://[user:password@]host[:port][,host[:port]…]/service[/db]`: the primary of a service, with its
///   sentinels (default port 26379)
///
/// `rediss://`, `rediss+cluster://` and `rediss+sentinel://` are the same with TLS. User, password and service are
/// percent-encoded if they contain `:`, `@`, `/`, `?`, `,` or `%`. The user and the password are for the servers.
/// Sentinels are queried without a password, unless the query has `sentinel-password=…` (and `sentinel-user=…`).
///
/// Except for a socket, the query may have `timeout=5s`, as in the URLs of the client Lettuce. Descriptions and mirrors
/// of an endpoint hide passwords.
public struct RedisEndpoint: Hashable, Sendable {
    /// The servers of an endpoint.
    public enum Servers: Hashable, Sendable {
        /// One server.
        case one(RedisAddress)
        /// A Redis Cluster, with its seed nodes.
        case cluster([RedisAddress])
        /// The primary of a service, which these sentinels name.
        case sentinels([RedisAddress], service: String)
    }

    /// The servers of this endpoint.
    public let servers: Servers
    /// The credentials for the servers.
    let login: Login
    /// The credentials for the sentinels.
    let sentinelLogin: Login
    /// The longest time to wait for a reply; nil for the default of ``RedisSettings/commandTimeout``.
    public var timeout: Duration?

    /// True if connections use TLS.
    public var usesTLS: Bool { login.usesTLS }
    /// The ACL user, or nil for the default user.
    public var user: String? { login.credentials?.user }
    /// The database number.
    public var database: Int { login.database }

    /// Each sentinel as a separate server; empty without sentinels.
    public var sentinels: [RedisEndpoint] {
        guard case .sentinels(let addresses, _) = servers else { return [] }
        return addresses.map {
            RedisEndpoint(.one($0), login: sentinelLogin, sentinelLogin: Login(), timeout: timeout)
        }
    }

    /// Creates an endpoint on this machine without a password, for tests and `dev` setups.
    public init(loopbackPort port: UInt16, timeout: Duration? = nil) {
        self.init(
            .one(.tcp(host: "127.0.0.1", port: port)), login: Login(), sentinelLogin: Login(), timeout: timeout)
    }

    init(_ servers: Servers, login: Login, sentinelLogin: Login, timeout: Duration? = nil) {
        self.servers = servers
        self.login = login
        self.sentinelLogin = sentinelLogin
        self.timeout = timeout
    }
}

extension RedisEndpoint: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL of the endpoint, with `***` instead of passwords.
    public var description: String {
        let secure = usesTLS ? "rediss" : "redis"
        let who = Self.masked(login.credentials)
        let database = database == 0 ? "" : "/\(database)"
        switch servers {
        case .one(.unix(let path)): return "unix:\(path)"
        case .one(let address): return "\(secure)://\(who)\(address)\(database)\(query)"
        case .cluster(let nodes): return "\(secure)+cluster://\(who)\(Self.list(nodes))\(query)"
        case .sentinels(let sentinels, let service):
            return "\(secure)+sentinel://\(who)\(Self.list(sentinels))/\(service)\(database)\(query)"
        }
    }

    /// The query of the URL, without passwords.
    private var query: String {
        var parameters: [String] = []
        if let credentials = sentinelLogin.credentials {
            parameters.append("sentinel-password=***")
            if let user = credentials.user { parameters.append("sentinel-user=\(user)") }
        }
        if let timeout { parameters.append("timeout=\(ValueKind<Duration>.duration().text(of: timeout))") }
        return parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&")
    }

    private static func masked(_ credentials: Credentials?) -> String {
        credentials.map { "\($0.user ?? ""):***@" } ?? ""
    }

    private static func list(_ addresses: [RedisAddress]) -> String {
        addresses.map(\.description).joined(separator: ",")
    }

    /// The same text as ``description``.
    public var debugDescription: String { description }

    /// Shows only the description, so that `dump` reveals no password.
    public var customMirror: Mirror { Mirror(self, children: ["endpoint": description]) }
}

extension RedisEndpoint {
    /// Parses the URL of an endpoint.
    /// - Throws: ``RedisError/Code/badEndpoint`` with the reason, which never contains the password. Also for a TLS URL
    ///   if hiredis was built without TLS.
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
        let parts = try RedisURLComponents(rest.dropFirst(2))
        switch scheme.drop(while: { $0 != "+" }) {
        case "": self = try Self.oneServer(parts, usesTLS)
        case "+cluster": self = try Self.cluster(parts, usesTLS)
        case "+sentinel": self = try Self.behindSentinels(parts, usesTLS)
        default: throw .badAddress("unknown scheme \(scheme):")
        }
        timeout = try parts.timeout
        if usesTLS && !Connection.hasTLS { throw .noTLS(scheme) }
    }

    private static func socketPath(_ rest: Substring) throws(RedisError) -> String {
        let path = rest.hasPrefix("//") ? rest.dropFirst(2) : rest
        guard path.hasPrefix("/") else { throw .badAddress("unix: must be followed by an absolute path") }
        // sun_path of unix(7) holds 108 bytes, including the terminating zero.
        guard path.utf8.count < 108, !path.utf8.contains(0) else {
            throw .badAddress("the socket path is too long or contains a zero byte")
        }
        return String(path)
    }

    private static func oneServer(_ parts: RedisURLComponents, _ usesTLS: Bool) throws(RedisError) -> Self {
        try parts.allowOnly(["timeout"])
        guard parts.hosts.count == 1 else {
            throw .badAddress("several hosts; use redis+cluster:// or redis+sentinel:// for them")
        }
        guard parts.path.count <= 1 else { throw .badAddress("only a database number may follow the host") }
        let login = Login(
            credentials: parts.credentials, database: try parts.database(at: 0), usesTLS: usesTLS)
        return Self(.one(try parts.addresses(usually: 6379)[0]), login: login, sentinelLogin: Login())
    }

    private static func cluster(_ parts: RedisURLComponents, _ usesTLS: Bool) throws(RedisError) -> Self {
        try parts.allowOnly(["timeout"])
        guard parts.path.isEmpty || parts.path == ["0"] else { throw .badAddress("a cluster has only database 0") }
        let login = Login(credentials: parts.credentials, usesTLS: usesTLS)
        return Self(.cluster(try parts.addresses(usually: 6379)), login: login, sentinelLogin: Login())
    }

    private static func behindSentinels(_ parts: RedisURLComponents, _ usesTLS: Bool) throws(RedisError) -> Self {
        try parts.allowOnly(["sentinel-user", "sentinel-password", "timeout"])
        guard let name = parts.path.first, let service = PercentEncoding.decode(name), !service.isEmpty else {
            throw .badAddress("no service; write redis+sentinel://host:port/service")
        }
        guard parts.path.count <= 2 else {
            throw .badAddress("only a service and a database number may follow the hosts")
        }
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
            \(scheme):// requires hiredis 1.0 or later with hiredis_ssl; this program was built with hiredis \
            \(RedisLibrary.version) without TLS. Rebuild it with them (Debian 13: apt-get install libhiredis-dev \
            libssl-dev; otherwise https://github.com/redis/hiredis, make USE_SSL=1), or use redis:// or unix: \
            through a TLS tunnel such as stunnel
            """)
    }
}

/// The address of one Redis server or sentinel.
public enum RedisAddress: Hashable, Sendable {
    /// A host name or an IP address, and a port.
    case tcp(host: String, port: UInt16)
    /// A socket on this machine.
    case unix(path: String)

    /// The host name or IP address; nil for a socket.
    var host: String? {
        if case .tcp(let host, _) = self { host } else { nil }
    }
}

extension RedisAddress: CustomStringConvertible {
    /// `host:port`, `[address]:port` for IPv6, or `unix:/path`.
    public var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}

/// A server and its login, as a connection needs them.
struct Server: Hashable {
    let address: RedisAddress
    let login: Login
}

/// The login settings of a server.
struct Login: Hashable {
    /// The credentials for AUTH; nil for no AUTH.
    var credentials: Credentials?
    /// The database number for SELECT, which is sent unless it is 0.
    var database = 0
    /// True if the connection uses TLS.
    var usesTLS = false
}

/// A password and the user that it belongs to.
struct Credentials: Hashable {
    /// The ACL user, or nil for the default user.
    let user: String?
    let password: String
}
