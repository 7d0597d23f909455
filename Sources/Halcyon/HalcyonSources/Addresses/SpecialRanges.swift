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
