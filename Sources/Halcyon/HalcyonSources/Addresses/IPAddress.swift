import Glibc

/// An IPv4 or IPv6 address. IPv4 is held in its IPv4-mapped form (RFC 4291, section 2.5.5.2), so that one range test serves both.
public struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// The first and the last 64 bits.
    let high: UInt64
    let low: UInt64

    /// From 4 or 16 bytes in network order; nil for any other number.
    public init?(bytes: some Collection<UInt8>) {
        func word(_ bytes: some Sequence<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        switch bytes.count {
        case 4: self.init(high: 0, low: 0xffff << 32 | word(bytes))
        case 16: self.init(high: word(bytes.prefix(8)), low: word(bytes.dropFirst(8)))
        default: return nil
        }
    }

    /// From the usual text, by inet_pton(3), which takes no short, octal or hexadecimal forms.
    public init?(_ text: some StringProtocol) {
        var bytes = [UInt8](repeating: 0, count: 16)
        let text = String(text)
        // What stands behind a zero byte, C would not see.
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

    /// The bytes in network order: 16 of them.
    var bytes: [UInt8] {
        [high, low].flatMap { word in stride(from: 56, through: 0, by: -8).map { UInt8(word >> UInt64($0) & 0xff) } }
    }

    /// The usual text, by inet_ntop(3); IPv4 without its mapping.
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

    /// nil for what is no range.
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

    /// Whether the address lies in the range.
    public func contains(_ address: IPAddress) -> Bool {
        func mask(_ bits: Int) -> UInt64 { bits <= 0 ? 0 : bits >= 64 ? .max : ~(.max >> UInt64(bits)) }
        return (address.high ^ first.high) & mask(bits) == 0 && (address.low ^ first.low) & mask(bits - 64) == 0
    }

    /// In CIDR notation.
    public var description: String { "\(first)/\(first.description.contains(":") ? bits : bits - 96)" }
}

/// The ranges that IANA's special-purpose registries (RFC 6890 and what updates it) keep from the public Internet.
enum SpecialRanges {
    private static let ipv4 = [
        "0.0.0.0/8",  // this network
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",  // private
        "100.64.0.0/10",  // carrier-grade NAT
        "127.0.0.0/8",  // loopback
        "169.254.0.0/16",  // link-local, and the clouds' metadata services
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

    /// Whether the address is globally reachable unicast, and any IPv4 address inside it as well.
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

    /// The IPv4 addresses that an IPv6 address may carry, by which a gateway or a tunnel would go on; several where that depends on how
    /// a network is set up. Of mapped ones there are none: they are IPv4 addresses themselves.
    var carried: [IPAddress] {
        let bytes = bytes
        func address(_ places: [Int]) -> IPAddress? { IPAddress(bytes: places.map { bytes[$0] }) }
        var found: [IPAddress?] = []
        if [Self.compatible, Self.translated, Self.nat64].contains(where: { $0.contains(self) }) {
            found = [lastFourBytes]
        } else if Self.localNAT64.contains(self) {
            // For prefixes of 48, 56, 64 and 96 bits (RFC 6052, section 2.2); the ninth byte is left out.
            found = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], [12, 13, 14, 15]].map(address)
        } else if Self.sixToFour.contains(self) {
            found = [address([2, 3, 4, 5])]
        } else if Self.teredo.contains(self) {
            // Of the server, and of the client with all bits turned (RFC 4380, section 4).
            found = [address([4, 5, 6, 7]), IPAddress(bytes: bytes.suffix(4).map { ~$0 })]
        }
        // ISATAP (RFC 5214, section 6.1).
        if low >> 32 & 0xfdff_ffff == 0x5efe { found.append(lastFourBytes) }
        return found.compactMap { $0 }
    }
}

/// One that stands in this file: a mistake in it is the program's, and traps.
private func range(_ text: String) -> AddressRange {
    guard let range = AddressRange(text) else { preconditionFailure("\(text) is no range of addresses") }
    return range
}
