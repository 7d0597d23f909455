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
    ///   - allow: what may be dialled though it is not public. A range of IPv4 addresses lets in these alone, and no IPv6 address that
    ///     carries one of them.
    ///   - deny: what is refused whatever else is said. A range of IPv4 addresses refuses IPv6 addresses that carry one of them, too.
    public init(allow: [AddressRule] = [], deny: [AddressRule] = []) {
        (allowedRanges, allowedHosts) = Self.parts(of: allow)
        (deniedRanges, deniedHosts) = Self.parts(of: deny)
    }

    private static func parts(of rules: [AddressRule]) -> ([AddressRange], [HostPattern]) {
        var (ranges, hosts): ([AddressRange], [HostPattern]) = ([], [])
        for rule in rules {
            switch rule {
            case .range(let range): ranges.append(range)
            case .host(let host): hosts.append(host)
            }
        }
        return (ranges, hosts)
    }

    /// Whether a host is refused by name. `host` is in lower case.
    public func denies(host: String) -> Bool { deniedHosts.contains { $0.matches(host) } }

    /// Whether a host is allowed by name, whatever its addresses. `host` is in lower case.
    public func trusts(host: String) -> Bool { allowedHosts.contains { $0.matches(host) } }

    /// Whether an address is refused whatever the host.
    public func denies(_ address: IPAddress) -> Bool {
        if deniedRanges.isEmpty { return false }
        let addresses = [address] + address.carried
        return deniedRanges.contains { addresses.contains(where: $0.contains) }
    }

    /// Whether an address may be dialled for a host that is not allowed by name.
    public func permits(_ address: IPAddress) -> Bool {
        if denies(address) { return false }
        return allowedRanges.contains { $0.contains(address) } || SpecialRanges.isPublic(address)
    }
}
