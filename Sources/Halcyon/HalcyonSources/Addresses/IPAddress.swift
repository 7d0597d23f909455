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
