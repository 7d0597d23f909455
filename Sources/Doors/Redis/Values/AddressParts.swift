import Formats

/// What stands behind `redis://` and its sisters: `[user:password@]host[:port][,…][/path][?query]`, taken apart and decoded.
struct AddressParts {
    let credentials: Credentials?
    /// Each `host` or `host:port`.
    let hosts: [Substring]
    /// What stands between the slashes, as it is written.
    let path: [Substring]
    private let query: Substring

    init(_ text: Substring) throws(RedisError) {
        guard !text.contains("#") else { throw .badAddress("it has a fragment") }
        let question = text.firstIndex(of: "?") ?? text.endIndex
        let (place, query) = (text[..<question], text[question...].dropFirst())
        let slash = place.firstIndex(of: "/") ?? place.endIndex
        let authority = place[..<slash]
        let at = authority.lastIndex(of: "@")
        credentials = try at.map { authority[..<$0] }.map(Self.credentials)
        hosts = (at.map { authority[authority.index(after: $0)...] } ?? authority)
            .split(separator: ",", omittingEmptySubsequences: false)
        let path = place[slash...].dropFirst()
        self.path = path.isEmpty ? [] : path.split(separator: "/", omittingEmptySubsequences: false)
        self.query = query
        if question < text.endIndex && query.isEmpty { throw .badAddress("an empty query") }
    }

    /// - Throws: ``RedisError/Code/badEndpoint`` when there is a query.
    func refuseQuery() throws(RedisError) {
        guard query.isEmpty else { throw .badAddress("it has a query") }
    }

    /// The hosts, with `port` where none is given.
    func addresses(usually port: UInt16) throws(RedisError) -> [RedisAddress] {
        var addresses: [RedisAddress] = []
        for host in hosts { addresses.append(try Self.address(host, port)) }
        return addresses
    }

    /// The database number at that place of the path; 0 when there is none.
    func database(at index: Int) throws(RedisError) -> Int {
        guard path.indices.contains(index) else { return 0 }
        guard let database = Int(path[index]), (0..<1 << 31).contains(database) else {
            throw .badAddress("the database must be a number")
        }
        return database
    }

    /// What `sentinel-user` and `sentinel-password` of the query say.
    var sentinelCredentials: Credentials? {
        get throws(RedisError) {
            guard !query.isEmpty else { return nil }
            var values: [Substring: String] = [:]
            for pair in query.split(separator: "&", omittingEmptySubsequences: false) {
                let name = pair.prefix { $0 != "=" }
                guard ["sentinel-user", "sentinel-password"].contains(name) else {
                    throw .badAddress("a query may have sentinel-user and sentinel-password alone")
                }
                guard let value = PercentEncoding.decode(pair.dropFirst(name.count + 1)), !value.isEmpty,
                    values[name] == nil
                else {
                    throw .badAddress("\(name) is empty, not well percent-encoded, or there twice")
                }
                values[name] = value
            }
            guard let password = values["sentinel-password"] else {
                throw .badAddress("sentinel-user without sentinel-password")
            }
            return Credentials(user: values["sentinel-user"], password: password)
        }
    }

    private static func credentials(_ text: Substring) throws(RedisError) -> Credentials {
        guard let colon = text.firstIndex(of: ":") else {
            throw .badAddress("a user without a password; write user:password@ or :password@")
        }
        guard let user = PercentEncoding.decode(text[..<colon]),
            let password = PercentEncoding.decode(text[text.index(after: colon)...])
        else {
            throw .badAddress("the user or the password is not well percent-encoded")
        }
        guard !password.isEmpty else { throw .badAddress("the password is empty") }
        return Credentials(user: user.isEmpty ? nil : user, password: password)
    }

    private static func address(_ text: Substring, _ usualPort: UInt16) throws(RedisError) -> RedisAddress {
        let host: Substring
        var rest: Substring
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { throw .badAddress("[ without ] in the host") }
            (host, rest) = (text[..<end].dropFirst(), text[end...].dropFirst())
        } else {
            let end = text.firstIndex(of: ":") ?? text.endIndex
            (host, rest) = (text[..<end], text[end...])
        }
        guard !host.isEmpty, !host.utf8.contains(0) else { throw .badAddress("no host") }
        guard !rest.isEmpty else { return .tcp(host: String(host), port: usualPort) }
        guard rest.removeFirst() == ":", let port = UInt16(rest), port > 0 else {
            throw .badAddress("the port must be 1 to 65535")
        }
        return .tcp(host: String(host), port: port)
    }
}

extension RedisError {
    /// The text of an endpoint is wrong.
    static func badAddress(_ reason: String) -> RedisError {
        RedisError(.badEndpoint, "not a Redis address: \(reason)")
    }
}
