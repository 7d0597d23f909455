import Glibc

/// Whoever makes a request.
struct Caller: Hashable, Sendable {
    /// Whom what is taken is counted to.
    enum Account: Hashable, Sendable {
        /// All who have the key of this name.
        case key(String)
        /// All who come from there without one.
        case address(String)
        /// All for whom there was no room.
        case others

        /// Who comes without a key.
        init(remoteAddress: String) { self = .address(Self.block(of: remoteAddress)) }

        /// An IPv4 address itself; of an IPv6 address the first 64 bits, since the others are its owner's to choose.
        private static func block(of text: String) -> String {
            var address = in6_addr()
            guard text.contains(":"), inet_pton(AF_INET6, text.prefix { $0 != "%" }.description, &address) == 1 else {
                return text
            }
            let bytes = withUnsafeBytes(of: address) { Array($0) }
            // An IPv4 address in IPv6's clothes (RFC 4291, 2.5.5.2).
            if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xff, bytes[11] == 0xff {
                return bytes[12...].map { "\($0)" }.joined(separator: ".")
            }
            return stride(from: 0, to: 8, by: 2)
                .map { String(Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]), radix: 16) }.joined(separator: ":")
        }
    }

    /// How it was let in.
    enum Leave: Hashable, Sendable {
        /// The gateway is open, or the thing is for everybody.
        case open
        /// By a key.
        case key
        /// By a signed URL, until then in seconds since 1970; nil for one without an end.
        case signature(expires: Int64?)
    }

    /// The name of the key; nil for who has none.
    let name: String?
    /// How it was let in.
    let leave: Leave
    /// Whether it may do what concerns the jobs of all: by a key of that scope, or where nobody needs a key.
    let mayAdminister: Bool
}
