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

    /// Whether a host may be asked for at all, before its addresses are known. `host` is in lower case.
    public func permits(host: String) -> Bool {
        !deniedHosts.contains { $0.matches(host) }
    }

    /// Whether `address` may be dialled for `host`.
    public func permits(_ address: IPAddress, for host: String) -> Bool {
        if deniedRanges.contains(where: { $0.contains(address) }) || !permits(host: host) { return false }
        if allowedRanges.contains(where: { $0.contains(address) }) || allowedHosts.contains(where: { $0.matches(host) })
        {
            return true
        }
        return SpecialRanges.isPublic(address)
    }
}

/// A host name, or `*.` and the end of host names.
struct HostPattern: Sendable {
    private let name: String

    init(_ text: String) { name = text.lowercased() }

    func matches(_ host: String) -> Bool {
        guard name.hasPrefix("*.") else { return host == name }
        return host.hasSuffix(name.dropFirst())
    }
}
