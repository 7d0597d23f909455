import HTTPFields

/// The head of a request, as strictly read as what lies behind it needs: where two readers could see two ends of one message,
/// or two hosts, it is refused.
struct Head {
    /// Where the body ends.
    enum Framing: Hashable {
        /// There is no body.
        case none
        /// After so many bytes.
        case length(Int)
        /// Where its last chunk says so.
        case chunked
    }

    let method: String
    /// As it came.
    let rawTarget: String
    let target: Target
    let headers: HTTPServer.Headers
    let framing: Framing
    /// Whether the client waits for a word before it sends the body.
    let expectsContinue: Bool

    /// - Throws: why the request is refused: 400, 413, 417 or 501.
    init(
        method: String, target: String, version: String, headers: HTTPServer.Headers, limits: HTTPServer.Limits,
        methods: Set<String>
    ) throws(HTTPServer.Refusal) {
        guard method.isToken else { throw HTTPServer.Refusal(400, "The method is none.") }
        let isOld = version == "HTTP/1.0"
        let rules = try Rules(headers)
        framing = try rules.framing(isOld, limits)
        guard methods.contains(method) else { throw HTTPServer.Refusal(501, "The method is not known here.") }
        self.target = try Target(target, method: method)
        try rules.checkHost(isOld)
        expectsContinue = rules.expectsContinue && !isOld
        self.method = method
        self.rawTarget = target
        self.headers = headers
    }
}

/// The headers that say where a request ends and whom it is for, picked out in one pass.
private struct Rules {
    private var lengths: [String] = []
    private var encodings: [String] = []
    private var hosts: [String] = []
    private(set) var expectsContinue = false

    init(_ headers: HTTPServer.Headers) throws(HTTPServer.Refusal) {
        for field in headers.fields {
            guard field.name.isToken, field.value.isFieldValue else {
                throw HTTPServer.Refusal(400, "A header is none.")
            }
            // By the length first: all headers of a request pass here.
            switch field.name.utf8.count {
            case 4 where field.name.isSame(as: "Host"): hosts.append(field.value)
            case 6 where field.name.isSame(as: "Expect"):
                guard field.value.isSame(as: "100-continue") else {
                    throw HTTPServer.Refusal(417, "Nothing but 100-continue can be expected.")
                }
                expectsContinue = true
            case 14 where field.name.isSame(as: "Content-Length"): lengths.append(field.value)
            case 17 where field.name.isSame(as: "Transfer-Encoding"): encodings.append(field.value)
            default: break
            }
        }
    }

    func framing(_ isOld: Bool, _ limits: HTTPServer.Limits) throws(HTTPServer.Refusal) -> Head.Framing {
        if let encoding = encodings.first {
            guard lengths.isEmpty, encodings.count == 1, !isOld else {
                throw HTTPServer.Refusal(400, "It is not clear where the body ends.")
            }
            guard encoding.isSame(as: "chunked") else {
                throw HTTPServer.Refusal(501, "The transfer encoding is not known here.")
            }
            return .chunked
        }
        guard let text = lengths.first else { return .none }
        guard lengths.count == 1, !text.isEmpty, text.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains)
        else { throw HTTPServer.Refusal(400, "It is not clear where the body ends.") }
        guard let length = Int(text), length <= limits.bodyBytes else {
            throw HTTPServer.Refusal(413, "The body is larger than \(limits.bodyBytes) bytes.")
        }
        return length == 0 ? .none : .length(length)
    }

    func checkHost(_ isOld: Bool) throws(HTTPServer.Refusal) {
        guard hosts.count == 1 || (hosts.isEmpty && isOld) else {
            throw HTTPServer.Refusal(400, "There must be one Host.")
        }
        guard hosts.allSatisfy({ $0.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"/@?#\\,".utf8.contains($0) } })
        else { throw HTTPServer.Refusal(400, "The Host is none.") }
    }
}
