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
