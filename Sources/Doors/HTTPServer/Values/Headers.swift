import HTTPFields

extension HTTPServer {
    /// The header fields of a request or of a response.
    public typealias Headers = HTTPHeaders
}

extension String {
    /// Whether it is a token (RFC 9110, 5.6.2), as methods and the names of headers are.
    var isToken: Bool { !isEmpty && utf8.allSatisfy(\.isTokenCharacter) }

    /// Whether it may be the value of a header: no control characters but tabs.
    var isFieldValue: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 } }
}

extension UInt8 {
    /// Letters, digits and ``!#$%&'*+-.^_`|~``.
    fileprivate var isTokenCharacter: Bool {
        switch self {
        case 0x21, 0x23...0x27, 0x2a, 0x2b, 0x2d, 0x2e, 0x30...0x39, 0x41...0x5a, 0x5e...0x7a, 0x7c, 0x7e: true
        default: false
        }
    }
}
