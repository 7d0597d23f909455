/// Which addresses may be dialled.
///
/// Denied ranges and hosts never; allowed ones always; of the rest only what is globally reachable unicast by IANA's
/// special-purpose registries (RFC 6890). IPv6 forms that carry an IPv4 address are judged by that address too.
public struct AddressPolicy: Sendable {
    private let allowedRanges: [AddressRange]
    private let deniedRanges: [AddressRange]
    private let allowedHosts: [HostPattern]
    private let deniedHosts: [HostPattern]

    /// - Parameters:
    ///   - allow: hosts (`img.example.org`, `*.example.org`), addresses and CIDR ranges that may be dialled though they are not
    ///     public.
    ///   - deny: the same forms; what they name is refused whatever else is said.
    public init(allow: [String] = [], deny: [String] = []) {
        allowedRanges = allow.compactMap { AddressRange($0) }
        deniedRanges = deny.compactMap { AddressRange($0) }
        allowedHosts = allow.filter { AddressRange($0) == nil }.map(HostPattern.init)
        deniedHosts = deny.filter { AddressRange($0) == nil }.map(HostPattern.init)
    }

    /// Whether a host is refused by name. `host` is in lower case.
    public func denies(host: String) -> Bool { deniedHosts.contains { $0.matches(host) } }

    /// Whether a host is allowed by name, whatever its addresses. `host` is in lower case.
    public func trusts(host: String) -> Bool { allowedHosts.contains { $0.matches(host) } }

    /// Whether an address is refused whatever the host.
    public func denies(_ address: IPAddress) -> Bool { deniedRanges.contains { $0.contains(address) } }

    /// Whether an address may be dialled for a host that is not allowed by name.
    public func permits(_ address: IPAddress) -> Bool {
        if denies(address) { return false }
        return allowedRanges.contains { $0.contains(address) } || SpecialRanges.isPublic(address)
    }
}

/// A host name, or `*.` and the end of host names.
public struct HostPattern: Sendable {
    private let name: String

    /// `img.example.org` or `*.example.org`, in any case.
    public init(_ text: String) { name = text.lowercased() }

    /// Whether it stands for a host, which is in lower case.
    public func matches(_ host: String) -> Bool {
        guard name.hasPrefix("*.") else { return host == name }
        return host.hasSuffix(name.dropFirst())
    }
}
