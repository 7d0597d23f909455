/// The policy for the addresses that may be connected to.
///
/// Denied ranges and hosts are always refused, and allowed ones are always permitted. Other addresses are permitted
/// only if they are globally reachable unicast according to IANA's special-purpose registries (RFC 6890). An IPv6
/// address that embeds an IPv4 address is checked against the rules for that address too.
public struct AddressPolicy: Sendable {
    private let allowedRanges: [AddressRange]
    private let deniedRanges: [AddressRange]
    private let allowedHosts: [HostPattern]
    private let deniedHosts: [HostPattern]

    /// Creates a policy.
    /// - Parameters:
    ///   - allow: Addresses that may be connected to although they are not public. A range of IPv4 addresses does not
    ///     cover IPv6 addresses that embed one of them.
    ///   - deny: Addresses that are refused, whatever else is configured. A range of IPv4 addresses also covers IPv6
    ///     addresses that embed one of them.
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

    /// True if a host is denied by name. `host` is in lower case.
    public func denies(host: String) -> Bool { deniedHosts.contains { $0.matches(host) } }

    /// True if a host is allowed by name, whatever its addresses. `host` is in lower case.
    public func trusts(host: String) -> Bool { allowedHosts.contains { $0.matches(host) } }

    /// True if an address is denied, whatever the host.
    public func denies(_ address: IPAddress) -> Bool {
        if deniedRanges.isEmpty { return false }
        let addresses = [address] + address.carried
        return deniedRanges.contains { addresses.contains(where: $0.contains) }
    }

    /// True if an address may be connected to for a host that is not allowed by name.
    public func permits(_ address: IPAddress) -> Bool {
        if denies(address) { return false }
        return allowedRanges.contains { $0.contains(address) } || SpecialRanges.isPublic(address)
    }
}

/// An entry of an allow or deny list: an address, a range of addresses, or a host.
public enum AddressRule: Hashable, Sendable, CustomStringConvertible {
    /// A range such as `10.0.0.0/8` or `fd00::/8`. A single address is a range of one.
    case range(AddressRange)
    /// A host such as `img.example.org` or `*.example.org`.
    case host(HostPattern)

    /// Parses an entry. Returns nil for anything else, because such a rule would silently match nothing.
    public init?(_ text: String) {
        if let range = AddressRange(text) {
            self = .range(range)
        } else if let host = HostPattern(text) {
            self = .host(host)
        } else {
            return nil
        }
    }

    /// The expected format of an entry, for error messages.
    public static let expectation =
        "an address (192.0.2.1, 2001:db8::1), a CIDR range (10.0.0.0/8, fd00::/8) "
        + "or a host (img.example.org, *.example.org)"

    /// The entry as it is written in a list.
    public var description: String {
        switch self {
        case .range(let range): range.description
        case .host(let host): host.description
        }
    }
}

extension AddressRule: ExpressibleByStringLiteral {
    /// Creates a rule from a literal. An invalid literal is a programming error and traps.
    public init(stringLiteral text: String) {
        guard let rule = AddressRule(text) else { preconditionFailure("\(text) is not \(Self.expectation)") }
        self = rule
    }
}

/// A pattern for the host of a URL: a name, `*.` and a suffix, or an address.
public struct HostPattern: Hashable, Sendable, CustomStringConvertible {
    /// The pattern in lower case, without the trailing dot.
    private let name: String

    /// Parses a pattern: `img.example.org` or `*.example.org`, in any case, with or without the trailing dot, or an
    /// address. IPv6 addresses have no brackets. Returns nil for anything else, such as a misspelled address.
    public init?(_ text: String) {
        if let address = IPAddress(text) {
            name = address.description
            return
        }
        name = Self.normalized(text)
        let labels = (name.hasPrefix("*.") ? name.dropFirst(2) : name[...])
            .split(separator: ".", omittingEmptySubsequences: false)
        guard name.utf8.count <= 255, labels.allSatisfy(Self.isLabel) else { return nil }
        // A name that ends in a number is an address. It is accepted only in its canonical form (URL Standard, 3.5).
        guard let last = labels.last, !last.utf8.allSatisfy({ (0x30...0x39).contains($0) }), !last.hasPrefix("0x")
        else {
            return nil
        }
    }

    /// True if the pattern matches a host, which is in lower case.
    public func matches(_ host: String) -> Bool {
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        let host = IPAddress(bare)?.description ?? Self.normalized(host)
        guard name.hasPrefix("*.") else { return host == name }
        return host.hasSuffix(name.dropFirst())
    }

    /// The pattern, such as `*.example.org`.
    public var description: String { name }

    /// Converts a name to lower case and removes the trailing dot, which does not change the host.
    private static func normalized(_ text: String) -> String {
        let text = text.lowercased()
        return text.hasSuffix(".") ? String(text.dropLast()) : text
    }

    /// True for a valid label. Internationalized names are written as `xn--…`, as in URLs.
    private static func isLabel(_ label: Substring) -> Bool {
        (1...63).contains(label.utf8.count)
            && label.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x61...0x7a, 0x2d, 0x5f, 0x7e: true
                default: false
                }
            }
    }
}

extension HostPattern: ExpressibleByStringLiteral {
    /// Creates a pattern from a literal. An invalid literal is a programming error and traps.
    public init(stringLiteral text: String) {
        guard let pattern = HostPattern(text) else { preconditionFailure("\(text) is not a host name") }
        self = pattern
    }
}
