import Formats

/// Where Redis is and how to be let in: one server, a cluster, or a master that sentinels know.
///
/// | written | is |
/// |---|---|
/// | `redis://[user[:password]@]host[:port][/db]` | one server (`redis://:password@host` for a password without a user) |
/// | `unix:/path` | one server of this machine |
/// | `redis+cluster://[user:password@]host[:port][,host[:port]…]` | a Redis Cluster, and nodes of it to begin with |
/// | `redis+sentinel://[user:password@]host[:port][,host[:port]…]/service[/db]` | the master of a service, and its sentinels (port 26379 unless given) |
///
/// `rediss://`, `rediss+cluster://` and `rediss+sentinel://` are the same with TLS. User, password and service are
/// percent-encoded where they hold `:`, `@`, `/`, `?`, `,` or `%`. The user and the password are for the servers; sentinels are
/// asked without a password, unless the address ends in `?sentinel-password=…` (and `&sentinel-user=…`).
/// Descriptions and mirrors of an endpoint show no password.
public struct RedisEndpoint: Hashable, Sendable {
    /// The servers behind an endpoint.
    public enum Servers: Hashable, Sendable {
        /// One server.
        case one(RedisAddress)
        /// A Redis Cluster, of which these nodes are known to begin with.
        case cluster([RedisAddress])
        /// The master of a service, whose address these sentinels tell.
        case sentinels([RedisAddress], service: String)
    }

    /// The servers.
    public let servers: Servers
    /// How the servers let one in.
    let login: Login
    /// How the sentinels let one in.
    let sentinelLogin: Login

    /// Whether connections are wrapped in TLS.
    public var usesTLS: Bool { login.usesTLS }
    /// The ACL user; nil for the default one.
    public var user: String? { login.credentials?.user }
    /// The database number.
    public var database: Int { login.database }

    /// Each sentinel by itself, as a server; none without sentinels.
    public var sentinels: [RedisEndpoint] {
        guard case .sentinels(let addresses, _) = servers else { return [] }
        return addresses.map { RedisEndpoint(.one($0), login: sentinelLogin, sentinelLogin: Login()) }
    }

    /// An endpoint on this machine, without a password: for tests and `dev` set-ups.
    public init(loopbackPort port: UInt16) {
        self.init(.one(.tcp(host: "127.0.0.1", port: port)), login: Login(), sentinelLogin: Login())
    }

    init(_ servers: Servers, login: Login, sentinelLogin: Login) {
        self.servers = servers
        self.login = login
        self.sentinelLogin = sentinelLogin
    }
}

extension RedisEndpoint: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The endpoint as it is written, with `***` for a password.
    public var description: String {
        let secure = usesTLS ? "rediss" : "redis"
        let who = Self.masked(login.credentials)
        let database = database == 0 ? "" : "/\(database)"
        switch servers {
        case .one(.unix(let path)): return "unix:\(path)"
        case .one(let address): return "\(secure)://\(who)\(address)\(database)"
        case .cluster(let nodes): return "\(secure)+cluster://\(who)\(Self.list(nodes))"
        case .sentinels(let sentinels, let service):
            var query = ""
            if let credentials = sentinelLogin.credentials {
                query = "?sentinel-password=***" + (credentials.user.map { "&sentinel-user=\($0)" } ?? "")
            }
            return "\(secure)+sentinel://\(who)\(Self.list(sentinels))/\(service)\(database)\(query)"
        }
    }

    private static func masked(_ credentials: Credentials?) -> String {
        credentials.map { "\($0.user ?? ""):***@" } ?? ""
    }

    private static func list(_ addresses: [RedisAddress]) -> String {
        addresses.map(\.description).joined(separator: ",")
    }

    /// The same.
    public var debugDescription: String { description }

    /// Shows the description alone, so that `dump` gives no password away.
    public var customMirror: Mirror { Mirror(self, children: ["endpoint": description]) }
}

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

/// Where one Redis server or sentinel listens.
public enum RedisAddress: Hashable, Sendable {
    /// A name or an IP address, and a port.
    case tcp(host: String, port: UInt16)
    /// A socket of this machine.
    case unix(path: String)

    /// The name or the IP address; nil for a socket of this machine.
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

/// One server and how to be let in: what a connection needs to know.
struct Server: Hashable {
    let address: RedisAddress
    let login: Login
}

/// How to be let in by a server.
struct Login: Hashable {
    /// What AUTH is given; nil for no AUTH.
    var credentials: Credentials?
    /// What SELECT is given, unless it is 0.
    var database = 0
    /// Whether the connection is wrapped in TLS.
    var usesTLS = false
}

/// A password and whose it is.
struct Credentials: Hashable {
    /// The ACL user; nil for the default one.
    let user: String?
    let password: String
}
