import Formats

/// The parsed and decoded parts of a URL after its scheme: `[user:password@]host[:port][,…][/path][?query]`.
struct RedisURLComponents {
    let credentials: Credentials?
    /// Each `host` or `host:port`.
    let hosts: [Substring]
    /// The path components as they are written, without decoding.
    let path: [Substring]
    /// The decoded parameters of the query by name.
    private let query: [Substring: String]

    init(_ text: Substring) throws(RedisError) {
        guard !text.contains("#") else { throw .badAddress("a fragment (#) is not allowed") }
        let question = text.firstIndex(of: "?") ?? text.endIndex
        let (location, query) = (text[..<question], text[question...].dropFirst())
        let slash = location.firstIndex(of: "/") ?? location.endIndex
        let authority = location[..<slash]
        let at = authority.lastIndex(of: "@")
        credentials = try at.map { authority[..<$0] }.map(Self.credentials)
        hosts = (at.map { authority[authority.index(after: $0)...] } ?? authority)
            .split(separator: ",", omittingEmptySubsequences: false)
        let path = location[slash...].dropFirst()
        self.path = path.isEmpty ? [] : path.split(separator: "/", omittingEmptySubsequences: false)
        self.query = question < text.endIndex ? try Self.parameters(query) : [:]
    }

    /// Checks that the query has no other parameters.
    /// - Throws: ``RedisError/Code/badEndpoint`` if it has.
    func allowOnly(_ names: [Substring]) throws(RedisError) {
        guard query.keys.allSatisfy(names.contains) else {
            throw .badAddress("unknown query parameter; allowed: \(names.joined(separator: ", "))")
        }
    }

    /// The value of `timeout` in the query; nil if it has none.
    var timeout: Duration? {
        get throws(RedisError) {
            guard let text = query["timeout"] else { return nil }
            let kind = ValueKind<Duration>.duration(in: .milliseconds(1) ... .seconds(3600))
            guard let timeout = kind.value(of: text) else { throw .badAddress("timeout is not \(kind.expectation)") }
            return timeout
        }
    }

    /// Returns the addresses of the hosts, with `port` as the default port.
    func addresses(usually port: UInt16) throws(RedisError) -> [RedisAddress] {
        var addresses: [RedisAddress] = []
        for host in hosts { addresses.append(try Self.address(host, port)) }
        return addresses
    }

    /// Returns the database number at `index` of the path, or 0 if the path is shorter.
    func database(at index: Int) throws(RedisError) -> Int {
        guard path.indices.contains(index) else { return 0 }
        guard let database = Int(path[index]), (0..<1 << 31).contains(database) else {
            throw .badAddress("the database must be a number")
        }
        return database
    }

    /// The values of `sentinel-user` and `sentinel-password` in the query.
    var sentinelCredentials: Credentials? {
        get throws(RedisError) {
            guard let password = query["sentinel-password"] else {
                guard query["sentinel-user"] == nil else {
                    throw .badAddress("sentinel-user without sentinel-password")
                }
                return nil
            }
            return Credentials(user: query["sentinel-user"], password: password)
        }
    }

    private static func parameters(_ query: Substring) throws(RedisError) -> [Substring: String] {
        guard !query.isEmpty else { throw .badAddress("the query after ? is empty") }
        var values: [Substring: String] = [:]
        for pair in query.split(separator: "&", omittingEmptySubsequences: false) {
            let name = pair.prefix { $0 != "=" }
            guard let value = PercentEncoding.decode(pair.dropFirst(name.count + 1)), !value.isEmpty,
                values.updateValue(value, forKey: name) == nil
            else {
                throw .badAddress("a query parameter is empty, repeated, or has invalid percent-encoding")
            }
        }
        return values
    }

    private static func credentials(_ text: Substring) throws(RedisError) -> Credentials {
        guard let colon = text.firstIndex(of: ":") else {
            throw .badAddress("a user without a password; use user:password@ or :password@")
        }
        guard let user = PercentEncoding.decode(text[..<colon]),
            let password = PercentEncoding.decode(text[text.index(after: colon)...])
        else {
            throw .badAddress("the user or the password has invalid percent-encoding")
        }
        guard !password.isEmpty else { throw .badAddress("the password is empty") }
        return Credentials(user: user.isEmpty ? nil : user, password: password)
    }

    private static func address(_ text: Substring, _ usualPort: UInt16) throws(RedisError) -> RedisAddress {
        let host: Substring
        var rest: Substring
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { throw .badAddress("the host has [ without ]") }
            (host, rest) = (text[..<end].dropFirst(), text[end...].dropFirst())
        } else {
            let end = text.firstIndex(of: ":") ?? text.endIndex
            (host, rest) = (text[..<end], text[end...])
        }
        guard !host.isEmpty, !host.utf8.contains(0) else { throw .badAddress("the host is empty") }
        guard !rest.isEmpty else { return .tcp(host: String(host), port: usualPort) }
        guard rest.removeFirst() == ":", let port = UInt16(rest), port > 0 else {
            throw .badAddress("the port must be from 1 to 65535")
        }
        return .tcp(host: String(host), port: port)
    }
}

extension RedisError {
    /// Creates an error for an invalid endpoint URL.
    static func badAddress(_ reason: String) -> RedisError {
        RedisError(.badEndpoint, "not a Redis address: \(reason)")
    }
}
