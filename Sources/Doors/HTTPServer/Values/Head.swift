import CMicroHTTP
import Formats
import Glibc

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
    let headers: HTTPFields
    let framing: Framing
    /// Whether the client waits for a word before it sends the body.
    let expectsContinue: Bool

    /// - Throws: why the request is refused: 400, 413, 417 or 501.
    init(
        method: String, target: String, version: String, headers: HTTPFields, limits: HTTPServer.Limits,
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

    init(_ headers: HTTPFields) throws(HTTPServer.Refusal) {
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

/// The header lines of a request as libmicrohttpd 0.9.75 leaves them in its buffer once it has read them: a zero in place of each
/// colon, and two in place of each line's end.
///
/// That version takes a bare line feed for a line's end, joins folded lines, breaks a line off at a zero, and takes a line that
/// begins with its colon for the end of the head, so that what stands behind becomes another request. Its values tell nothing
/// of that; the buffer does. Later versions refuse all of it by themselves.
enum RawHead {
    /// Whether the lines are what they seem: `count` headers, each with a name, on a line of its own that ends as it should.
    ///
    /// - Parameters:
    ///   - bytes: from behind the version in the request line to the end of the head.
    static func isSound(_ bytes: UnsafeRawBufferPointer, count: Int) -> Bool {
        var rest = bytes[...]
        func end() -> Bool {
            guard rest.prefix(2).elementsEqual([0, 0]) else { return false }
            rest = rest.dropFirst(2)
            return true
        }
        guard end() else { return false }
        for _ in 0..<count {
            guard let colon = rest.firstIndex(of: 0), colon > rest.startIndex else { return false }
            let name = rest[..<colon]
            // A line that folds begins with a blank; one that a zero has broken off may hold its own colon still.
            guard !name.contains(where: { $0 <= 0x20 || $0 == UInt8(ascii: ":") }) else { return false }
            rest = rest[(colon + 1)...]
            guard let valueEnd = rest.firstIndex(of: 0) else { return false }
            rest = rest[valueEnd...]
            guard end() else { return false }
        }
        return end() && rest.isEmpty
    }
}

/// The head of a request that has come.
/// - Throws: why it is refused.
func receivedHead(
    _ connection: OpaquePointer, _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>, _ target: String,
    _ settings: HTTPServer.Settings
) throws(HTTPServer.Refusal) -> Head {
    let headers = receivedHeaders(connection)
    let name = String(cString: method)
    if readsLeniently {
        let size = cmicrohttp_head_size(connection)
        // Both pointers are into the one buffer that the head was read into.
        let start = UnsafeRawPointer(version) + "HTTP/1.1".utf8.count
        let count = UnsafeRawPointer(method) + size - start
        guard version - method == name.utf8.count + target.utf8.count + 2, count > 0,
            size <= max(4096, settings.limits.headBytes),
            RawHead.isSound(UnsafeRawBufferPointer(start: start, count: count), count: headers.fields.count)
        else { throw HTTPServer.Refusal(400, "The head has lines that are none.") }
    }
    return try Head(
        method: name, target: target, version: String(cString: version), headers: headers, limits: settings.limits,
        methods: settings.methods)
}

/// Whether this libmicrohttpd takes heads that it should refuse, and keeps them as ``RawHead`` knows it.
private let readsLeniently = HTTPServer.libraryVersion == "0.9.75"

private func receivedHeaders(_ connection: OpaquePointer) -> HTTPFields {
    var fields: [HTTPFields.Field] = []
    fields.reserveCapacity(16)
    withUnsafeMutablePointer(to: &fields) { fields in
        _ = MHD_get_connection_values_n(connection, MHD_ValueKind.HEADER_KIND, addHeader, fields)
    }
    return HTTPFields(fields)
}

private func addHeader(
    _ context: UnsafeMutableRawPointer?, _: MHD_ValueKind, _ name: UnsafePointer<CChar>?, _ nameSize: Int,
    _ value: UnsafePointer<CChar>?, _ valueSize: Int
) -> MHD_Result {
    var end = valueSize
    // It leaves the blanks behind a value.
    while end > 0, let last = value?[end - 1], last == 0x20 || last == 0x09 { end -= 1 }
    context!.assumingMemoryBound(to: [HTTPFields.Field].self).pointee.append(
        HTTPFields.Field(text(name, nameSize), text(value, end)))
    return .YES
}

private func text(_ bytes: UnsafePointer<CChar>?, _ count: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count), as: UTF8.self)
}

/// An answer of a status and nothing else, written past libmicrohttpd: for requests that are not complete, which it cannot
/// answer.
enum StatusLine {
    static func send(_ status: Int, to socket: Int32) {
        let reason = MHD_get_reason_phrase_for(UInt32(status)).map { String(cString: $0) } ?? ""
        var text = "HTTP/1.1 \(status) \(reason)\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        // As much as the kernel takes: who does not read does not learn why.
        text.withUTF8 { _ = Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)) }
        shutdown(socket, Int32(SHUT_WR))
    }
}
