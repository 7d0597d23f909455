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

/// One entry of a list of where jobs may load from: an address, a range of addresses, or a host.
public enum AddressRule: Hashable, Sendable, CustomStringConvertible {
    /// `10.0.0.0/8`, `fd00::/8`; a single address is a range of one.
    case range(AddressRange)
    /// `img.example.org`, `*.example.org`.
    case host(HostPattern)

    /// nil for what is neither: it would match nothing, and nobody would know.
    public init?(_ text: String) {
        if let range = AddressRange(text) {
            self = .range(range)
        } else if let host = HostPattern(text) {
            self = .host(host)
        } else {
            return nil
        }
    }

    /// What an entry must look like.
    public static let expectation =
        "an address (192.0.2.1, 2001:db8::1), a CIDR range (10.0.0.0/8, fd00::/8) or a host (img.example.org, *.example.org)"

    /// As it is written in a list.
    public var description: String {
        switch self {
        case .range(let range): range.description
        case .host(let host): host.description
        }
    }
}

extension AddressRule: ExpressibleByStringLiteral {
    /// One that stands in a program: a mistake in it is the program's, and traps.
    public init(stringLiteral text: String) {
        guard let rule = AddressRule(text) else { preconditionFailure("\(text) is not \(Self.expectation)") }
        self = rule
    }
}

/// A host as it stands in a URL: a name, `*.` and the end of names, or an address.
public struct HostPattern: Hashable, Sendable, CustomStringConvertible {
    /// In lower case, without the dot of the root.
    private let name: String

    /// `img.example.org` or `*.example.org`, in any case, with or without the dot of the root, or an address, IPv6 without brackets; nil for what
    /// is none of it, such as a misspelt address.
    public init?(_ text: String) {
        if let address = IPAddress(text) {
            name = address.description
            return
        }
        name = Self.normalized(text)
        let labels = (name.hasPrefix("*.") ? name.dropFirst(2) : name[...])
            .split(separator: ".", omittingEmptySubsequences: false)
        guard name.utf8.count <= 255, labels.allSatisfy(Self.isLabel) else { return nil }
        // A name that ends in a number is an address, and those have one spelling here (URL Standard, 3.5).
        guard let last = labels.last, !last.utf8.allSatisfy({ (0x30...0x39).contains($0) }), !last.hasPrefix("0x")
        else {
            return nil
        }
    }

    /// Whether it stands for a host, which is in lower case.
    public func matches(_ host: String) -> Bool {
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        let host = IPAddress(bare)?.description ?? Self.normalized(host)
        guard name.hasPrefix("*.") else { return host == name }
        return host.hasSuffix(name.dropFirst())
    }

    /// `*.example.org`.
    public var description: String { name }

    /// The dot of the root says that a name is whole, and changes nothing else about it.
    private static func normalized(_ text: String) -> String {
        let text = text.lowercased()
        return text.hasSuffix(".") ? String(text.dropLast()) : text
    }

    /// International names are written as `xn--…`, as in URLs.
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
    /// One that stands in a program: a mistake in it is the program's, and traps.
    public init(stringLiteral text: String) {
        guard let pattern = HostPattern(text) else { preconditionFailure("\(text) is no name of a host") }
        self = pattern
    }
}
