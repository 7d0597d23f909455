import HTTPServer

/// As what a gateway that keeps to its machine, and asks for no key, may be addressed: by no name that somebody else owns. Else a page could have its
/// name resolved to 127.0.0.1 and do everything as if it were this machine's own (DNS rebinding). A pure value.
struct HostRule: Hashable {
    /// Whether every name will do: keys are asked for, or the gateway is said to be open.
    let takesAll: Bool

    init(_ options: AccessOptions) { takesAll = !options.keys.isEmpty || options.isOpen }

    /// - Parameter host: a host, and perhaps a port, as a request names it.
    func allows(_ host: String) -> Bool {
        if takesAll || host.isEmpty { return true }
        let name =
            host.hasPrefix("[")
            ? host.dropFirst().prefix { $0 != "]" }.lowercased() : host.prefix { $0 != ":" }.lowercased()
        if name == "::1" || name == "localhost" || name.hasSuffix(".localhost") { return true }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    /// What others are answered.
    static var refusal: HTTPServer.Response {
        Problem(.misdirected, "without keys this gateway answers only as localhost: set gateway.keys, or gateway.open")
            .response
    }
}
