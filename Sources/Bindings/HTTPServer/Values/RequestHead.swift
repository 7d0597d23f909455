import CMicroHTTP
import Formats
import Glibc

/// The head of a request, parsed strictly to protect the services behind the server. A head that two parsers could read
/// as two different messages, or as naming two hosts, is rejected.
struct RequestHead {
    /// The framing of the body.
    enum Framing: Hashable {
        /// The request has no body.
        case none
        /// The body has this number of bytes.
        case length(Int)
        /// The body ends with its last chunk.
        case chunked
    }

    let method: String
    /// The target, unchanged.
    let rawTarget: String
    let target: Target
    let headers: HTTPFields
    let framing: Framing
    /// True if the client waits for `100 Continue` before it sends the body.
    let expectsContinue: Bool

    /// - Throws: The reason for which the request is rejected, with status 400, 413, 417 or 501.
    init(
        method: String, target: String, version: String, headers: HTTPFields, limits: HTTPServer.Limits,
        methods: Set<String>
    ) throws(HTTPServer.HTTPRequestError) {
        guard method.isToken else { throw HTTPServer.HTTPRequestError(400, "Invalid request method.") }
        let isOld = version == "HTTP/1.0"
        let rules = try Rules(headers)
        framing = try rules.framing(isOld, limits)
        guard methods.contains(method) else { throw HTTPServer.HTTPRequestError(501, "Unsupported request method.") }
        self.target = try Target(target, method: method)
        try rules.checkHost(isOld)
        expectsContinue = rules.expectsContinue && !isOld
        self.method = method
        self.rawTarget = target
        self.headers = headers
    }
}

/// The headers that determine the end of a request and its host, collected in one pass.
private struct Rules {
    private var lengths: [String] = []
    private var encodings: [String] = []
    private var hosts: [String] = []
    private(set) var expectsContinue = false

    init(_ headers: HTTPFields) throws(HTTPServer.HTTPRequestError) {
        for field in headers.fields {
            guard field.name.isToken, field.value.isFieldValue else {
                throw HTTPServer.HTTPRequestError(400, "Invalid header field.")
            }
            // Compare the length first: this runs for every header of every request.
            switch field.name.utf8.count {
            case 4 where field.name.isSame(as: "Host"): hosts.append(field.value)
            case 6 where field.name.isSame(as: "Expect"):
                guard field.value.isSame(as: "100-continue") else {
                    throw HTTPServer.HTTPRequestError(417, "Unsupported Expect header; only 100-continue is supported.")
                }
                expectsContinue = true
            case 14 where field.name.isSame(as: "Content-Length"): lengths.append(field.value)
            case 17 where field.name.isSame(as: "Transfer-Encoding"): encodings.append(field.value)
            default: break
            }
        }
    }

    func framing(_ isOld: Bool, _ limits: HTTPServer.Limits) throws(HTTPServer.HTTPRequestError) -> RequestHead.Framing
    {
        if let encoding = encodings.first {
            guard lengths.isEmpty, encodings.count == 1, !isOld else {
                throw HTTPServer.HTTPRequestError(400, "Invalid Content-Length or Transfer-Encoding.")
            }
            guard encoding.isSame(as: "chunked") else {
                throw HTTPServer.HTTPRequestError(501, "Unsupported Transfer-Encoding; only chunked is supported.")
            }
            return .chunked
        }
        guard let text = lengths.first else { return .none }
        guard lengths.count == 1, !text.isEmpty, text.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains)
        else { throw HTTPServer.HTTPRequestError(400, "Invalid Content-Length or Transfer-Encoding.") }
        guard let length = Int(text), length <= limits.bodyBytes else {
            throw HTTPServer.HTTPRequestError(413, "The request body is larger than \(limits.bodyBytes) bytes.")
        }
        return length == 0 ? .none : .length(length)
    }

    func checkHost(_ isOld: Bool) throws(HTTPServer.HTTPRequestError) {
        guard hosts.count == 1 || (hosts.isEmpty && isOld) else {
            throw HTTPServer.HTTPRequestError(400, "The request must have exactly one Host header.")
        }
        guard hosts.allSatisfy({ $0.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"/@?#\\,".utf8.contains($0) } })
        else { throw HTTPServer.HTTPRequestError(400, "Invalid Host header.") }
    }
}

/// The header lines of a request as libmicrohttpd 0.9.75 leaves them in its buffer: each colon is replaced by a zero
/// byte, and each line end by two.
///
/// That version accepts a bare line feed as a line end, joins folded lines, ends a line at a zero byte, and takes a
/// line that begins with a colon for the end of the head, so that the rest becomes another request. The parsed values
/// do not show that; the buffer does. Later versions reject all of it themselves.
enum RawHead {
    /// True if the buffer has exactly `count` headers, each with a name, on a separate line with a proper end.
    ///
    /// - Parameters:
    ///   - bytes: The bytes from the end of the version in the request line to the end of the head.
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
            // A folded line begins with a blank. A line cut off by a zero byte may still contain its colon.
            guard !name.contains(where: { $0 <= 0x20 || $0 == UInt8(ascii: ":") }) else { return false }
            rest = rest[(colon + 1)...]
            guard let valueEnd = rest.firstIndex(of: 0) else { return false }
            rest = rest[valueEnd...]
            guard end() else { return false }
        }
        return end() && rest.isEmpty
    }
}

/// Parses the head of a request.
/// - Throws: The reason for which the request is rejected.
func receivedHead(
    _ connection: OpaquePointer, _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>, _ target: String,
    _ settings: HTTPServer.Settings
) throws(HTTPServer.HTTPRequestError) -> RequestHead {
    let headers = receivedHeaders(connection)
    let name = String(cString: method)
    if readsLeniently {
        let size = cmicrohttp_head_size(connection)
        // Memory for long response heads is not for requests.
        guard size <= max(4096, settings.limits.headBytes) else {
            throw HTTPServer.HTTPRequestError(431, "The request head is too long.")
        }
        // Both pointers point into the buffer that the head was read into.
        let start = UnsafeRawPointer(version) + "HTTP/1.1".utf8.count
        let count = UnsafeRawPointer(method) + size - start
        guard version - method == name.utf8.count + target.utf8.count + 2, count > 0,
            RawHead.isSound(UnsafeRawBufferPointer(start: start, count: count), count: headers.fields.count)
        else { throw HTTPServer.HTTPRequestError(400, "Malformed header lines in the request head.") }
    }
    return try RequestHead(
        method: name, target: target, version: String(cString: version), headers: headers, limits: settings.limits,
        methods: settings.methods)
}

/// True if this libmicrohttpd accepts heads that it should reject, and leaves them in the form that ``RawHead`` parses.
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
    // libmicrohttpd leaves the blanks after a value.
    while end > 0, let last = value?[end - 1], last == 0x20 || last == 0x09 { end -= 1 }
    context!.assumingMemoryBound(to: [HTTPFields.Field].self).pointee.append(
        HTTPFields.Field(text(name, nameSize), text(value, end)))
    return .YES
}

private func text(_ bytes: UnsafePointer<CChar>?, _ count: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count), as: UTF8.self)
}

/// A response that consists of a status only, written without libmicrohttpd: for incomplete requests, to which
/// libmicrohttpd cannot respond.
enum StatusLine {
    static func send(_ status: Int, to socket: Int32) {
        let reason = MHD_get_reason_phrase_for(UInt32(status)).map { String(cString: $0) } ?? ""
        var text = "HTTP/1.1 \(status) \(reason)\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        // Only as much as the kernel buffers. A client that does not read does not get the reason.
        text.withUTF8 { _ = Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)) }
        shutdown(socket, Int32(SHUT_WR))
    }
}
