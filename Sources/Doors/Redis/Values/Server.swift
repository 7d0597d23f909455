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
