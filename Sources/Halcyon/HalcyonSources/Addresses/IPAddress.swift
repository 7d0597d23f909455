import Glibc

/// An IPv4 or IPv6 address. IPv4 addresses are stored in IPv4-mapped form (RFC 4291, section 2.5.5.2), so that one
/// range test covers both families.
public struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// The first 64 bits. `low` has the last 64 bits.
    let high: UInt64
    let low: UInt64

    /// Creates an address from 4 or 16 bytes in network order. Returns nil for any other count.
    public init?(bytes: some Collection<UInt8>) {
        func word(_ bytes: some Sequence<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        switch bytes.count {
        case 4: self.init(high: 0, low: 0xffff << 32 | word(bytes))
        case 16: self.init(high: word(bytes.prefix(8)), low: word(bytes.dropFirst(8)))
        default: return nil
        }
    }

    /// Parses an address with inet_pton(3), which rejects short, octal and hexadecimal forms.
    public init?(_ text: some StringProtocol) {
        var bytes = [UInt8](repeating: 0, count: 16)
        let text = String(text)
        // C strings end at the first zero byte.
        guard text.utf8.allSatisfy({ $0 != 0 }) else { return nil }
        if inet_pton(AF_INET, text, &bytes) == 1 {
            self.init(bytes: bytes.prefix(4))
        } else if inet_pton(AF_INET6, text, &bytes) == 1 {
            self.init(bytes: bytes)
        } else {
            return nil
        }
    }

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The IPv4 address in the last 32 bits.
    var lastFourBytes: IPAddress { IPAddress(high: 0, low: 0xffff << 32 | low & 0xffff_ffff) }

    /// The 16 bytes in network order.
    var bytes: [UInt8] {
        [high, low].flatMap { word in withUnsafeBytes(of: word.bigEndian) { Array($0) } }
    }

    /// The text form, by inet_ntop(3). IPv4 addresses are printed without the mapping.
    public var description: String {
        let isMapped = high == 0 && low >> 32 == 0xffff
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let bytes = isMapped ? Array(bytes.suffix(4)) : bytes
        inet_ntop(isMapped ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

/// A range of addresses in CIDR notation (RFC 4632): `10.0.0.0/8`, `fc00::/7`; a single address is a range of one.
public struct AddressRange: Hashable, Sendable, CustomStringConvertible {
    private let first: IPAddress
    private let bits: Int

    /// Parses a range. Returns nil if the text is invalid.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPAddress(parts[0]) else { return nil }
        let isIPv4 = !parts[0].contains(":")
        let longest = isIPv4 ? 32 : 128
        var bits = longest
        if parts.count == 2 {
            guard parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let length = Int(parts[1]),
                (0...longest).contains(length)
            else { return nil }
            bits = length
        }
        self.first = address
        self.bits = isIPv4 ? bits + 96 : bits
    }

    /// True if the range contains the address.
    public func contains(_ address: IPAddress) -> Bool {
        func mask(_ bits: Int) -> UInt64 { bits <= 0 ? 0 : bits >= 64 ? .max : ~(.max >> UInt64(bits)) }
        return (address.high ^ first.high) & mask(bits) == 0 && (address.low ^ first.low) & mask(bits - 64) == 0
    }

    /// The range in CIDR notation.
    public var description: String { "\(first)/\(first.description.contains(":") ? bits : bits - 96)" }
}

/// The ranges that IANA's special-purpose registries (RFC 6890 and its updates) exclude from the public Internet.
enum SpecialRanges {
    private static let ipv4 = [
        "0.0.0.0/8",  // this network
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",  // private
        "100.64.0.0/10",  // carrier-grade NAT
        "127.0.0.0/8",  // loopback
        "169.254.0.0/16",  // link-local, including cloud metadata services
        "192.0.0.0/24", "192.88.99.0/24",  // protocol assignments, 6to4 relays
        "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24",  // documentation
        "198.18.0.0/15",  // benchmarks
        "224.0.0.0/4", "240.0.0.0/4",  // multicast, reserved and broadcast
    ].map(range)

    private static let ipv4Mapped = range("::ffff:0:0/96")
    private static let globalUnicast = range("2000::/3")
    private static let nat64 = range("64:ff9b::/96")
    private static let sixToFour = range("2002::/16")
    private static let ipv6NotPublic = [
        "2001::/23",  // protocol assignments: Teredo, ORCHID, benchmarks and others
        "2001:db8::/32", "3fff::/20",  // documentation
    ].map(range)

    /// True if the address is globally reachable unicast, and any embedded IPv4 address is too.
    static func isPublic(_ address: IPAddress) -> Bool {
        if ipv4Mapped.contains(address) { return !ipv4.contains { $0.contains(address) } }
        if nat64.contains(address) { return isPublic(address.lastFourBytes) }
        guard globalUnicast.contains(address), !ipv6NotPublic.contains(where: { $0.contains(address) }) else {
            return false
        }
        if sixToFour.contains(address) {
            return isPublic(IPAddress(high: 0, low: 0xffff << 32 | address.high >> 16 & 0xffff_ffff))
        }
        // ISATAP (RFC 5214, section 6.1): the interface identifier is 0000:5efe or 0200:5efe and an IPv4 address.
        if address.low >> 32 & 0xfdff_ffff == 0x5efe { return isPublic(address.lastFourBytes) }
        return true
    }
}

extension IPAddress {
    private static let compatible = range("::/96")
    private static let translated = range("::ffff:0:0:0/96")
    private static let nat64 = range("64:ff9b::/96")
    private static let localNAT64 = range("64:ff9b:1::/48")
    private static let sixToFour = range("2002::/16")
    private static let teredo = range("2001::/32")

    /// The IPv4 addresses that an IPv6 address may embed, to which a gateway or a tunnel would forward traffic. There
    /// are several candidates if the position depends on the network's configuration. Mapped addresses have none,
    /// because they are IPv4 addresses themselves.
    var carried: [IPAddress] {
        let bytes = bytes
        func address(_ places: [Int]) -> IPAddress? { IPAddress(bytes: places.map { bytes[$0] }) }
        var found: [IPAddress?] = []
        if [Self.compatible, Self.translated, Self.nat64].contains(where: { $0.contains(self) }) {
            found = [lastFourBytes]
        } else if Self.localNAT64.contains(self) {
            // For prefixes of 48, 56, 64 and 96 bits (RFC 6052, section 2.2). The ninth byte is skipped.
            found = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], [12, 13, 14, 15]].map(address)
        } else if Self.sixToFour.contains(self) {
            found = [address([2, 3, 4, 5])]
        } else if Self.teredo.contains(self) {
            // The address of the server, and the bitwise inverted address of the client (RFC 4380, section 4).
            found = [address([4, 5, 6, 7]), IPAddress(bytes: bytes.suffix(4).map { ~$0 })]
        }
        // ISATAP (RFC 5214, section 6.1).
        if low >> 32 & 0xfdff_ffff == 0x5efe { found.append(lastFourBytes) }
        return found.compactMap { $0 }
    }
}

/// Creates a range from a constant. An invalid constant is a programming error and traps.
private func range(_ text: String) -> AddressRange {
    guard let range = AddressRange(text) else { preconditionFailure("\(text) is not an address range") }
    return range
}
