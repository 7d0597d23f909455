import HTTPServer

/// As what a gateway that keeps to its machine, and asks for no key, may be addressed: by no name that somebody else owns. Else a page could have its
/// name resolved to 127.0.0.1 and do everything as if it were this machine's own (DNS rebinding). A pure value.
struct HostRule: Hashable {
    /// Whether every name will do: keys are asked for, or the gateway is said to be open.
    let takesAll: Bool

    init(_ options: AccessOptions) { takesAll = options.asksForKeys || options.isOpen }

    /// - Parameter host: a host, and perhaps a port, as a request names it.
    func allows(_ host: String) -> Bool {
        if takesAll || host.isEmpty { return true }
        guard let name = Self.name(of: host) else { return false }
        if name == "::1" || name == "localhost" || name.hasSuffix(".localhost") { return true }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    /// The host in lower case, without brackets and without its port; nil for what is no host with a port (RFC 9110, section 7.2).
    private static func name(of host: String) -> String? {
        let isBracketed = host.hasPrefix("[")
        let end = host.firstIndex(of: isBracketed ? "]" : ":") ?? host.endIndex
        let rest = host[end...].drop { isBracketed && $0 == "]" }
        let isPort = rest.utf8.dropFirst().allSatisfy { (0x30...0x39).contains($0) }
        guard rest.isEmpty || rest.utf8.first == UInt8(ascii: ":") && isPort, !isBracketed || end < host.endIndex else {
            return nil
        }
        return host[..<end].drop { $0 == "[" }.lowercased()
    }

    /// What others are answered.
    static var refusal: HTTPServer.Response {
        Problem(.misdirected, "without keys this gateway answers only as localhost: set gateway.keys, or gateway.open")
            .response
    }
}
