import CCurl
import Formats
import Glibc

/// A request, from the call to its response.
///
/// `@unchecked Sendable`: the caller creates it and hands it over. From then on only the client's thread accesses it,
/// so a cancellation is a message to that thread and needs no lock. Before the transfer has reached the thread, a
/// cancellation only reads ``isHandedIn``, which only that thread sets.
final class Transfer: @unchecked Sendable {
    typealias Continuation = CheckedContinuation<Result<HTTPResponse, CurlError>, Never>

    typealias Progress = @Sendable (HTTPProgress) -> Void
    /// The reaction of a callback to the data that libcurl passed to it.
    enum Verdict {
        case accepted
        /// Stops the transfer.
        case refused
        /// Pauses the transfer. libcurl passes the same data again after ``Transfer/resume(holding:)``.
        case paused
    }

    let request: HTTPRequest
    /// True if the client's thread has received the transfer.
    var isHandedIn = false
    /// The easy handle, while the transfer runs.
    private(set) var easy: EasyHandle?
    private var start = ContinuousClock.now

    private let allowsAddress: @Sendable (SocketAddress) -> Bool
    private let progress: Progress?
    private let admission: HTTPAdmission?
    /// The number of bytes of the body that may be held.
    private var admitted: Int
    private var pause: Pause?
    private var paused = Duration.zero
    /// Makes the client's thread call ``resume(holding:)``.
    private let onAdmission: @Sendable (Transfer, _ bytes: Int) -> Void
    private var caller: Continuation?

    private var head = ResponseHead()
    private var body: [UInt8] = []
    /// The length of the whole body, if it is known.
    private var expected: Int?
    private var uploaded = 0
    private var isConnecting = true
    private var refused: SocketAddress?
    /// The reason for which a callback stopped the transfer, which libcurl does not know.
    private var failure: CurlError?

    init(
        _ request: HTTPRequest, allowsAddress: @escaping @Sendable (SocketAddress) -> Bool, progress: Progress?,
        admission: HTTPAdmission?, onAdmission: @escaping @Sendable (Transfer, _ bytes: Int) -> Void
    ) {
        self.request = request
        self.allowsAddress = allowsAddress
        self.progress = progress
        self.admission = admission
        self.onAdmission = onAdmission
        admitted = admission?.bytes ?? .max
    }

    /// Sets the continuation to resume with the response.
    func wait(_ continuation: Continuation) { caller = continuation }

    /// Completes the transfer, unless that has been done.
    func answer(_ result: Result<HTTPResponse, CurlError>) {
        caller?.resume(returning: result)
        caller = nil
    }

    /// Records that the transfer is about to run on `easy`.
    func begin(on easy: EasyHandle) {
        start = .now
        self.easy = easy
    }

    /// Releases and returns the handle, because the transfer no longer runs.
    func end() -> EasyHandle? {
        defer { easy = nil }
        pause?.wait.cancel()
        return easy
    }

    // MARK: Callbacks of libcurl

    /// Accepts a line of a response head. Returns false to stop the transfer.
    func received(headLine: UnsafeRawBufferPointer) -> Bool {
        switch head.take(Array(headLine)) {
        case .tooMuch:
            failure = CurlError(.protocolError, "the headers are larger than \(ResponseHead.limit) bytes")
            return false
        case .end:
            // The next event is another connection.
            if head.isRedirect { isConnecting = true }
            return true
        case .status, .field, .trailer: return true
        }
    }

    /// Accepts a part of the body, decompressed.
    func received(bodyPart: UnsafeRawBufferPointer) -> Verdict {
        if body.isEmpty && !makeRoom() { return .refused }
        let needed = body.count + bodyPart.count
        guard needed <= request.maxBytes else {
            _ = stopAsTooLarge()
            return .refused
        }
        if needed > admitted {
            waitForAdmission(of: max(needed, expected ?? 0))
            return .paused
        }
        // The limit bounds the cost of a false Content-Length.
        if body.isEmpty { body.reserveCapacity(min(expected ?? 0, 1 << 22)) }
        body.append(contentsOf: bodyPart)
        progress?(HTTPProgress(status: head.status, received: body.count, expected: expected))
        return .accepted
    }

    /// Checks the number of bytes received so far, before decompression and including responses that a redirect
    /// discards. Returns false to stop the transfer.
    func received(rawBytes: Int) -> Bool {
        // Compression makes incompressible bytes a little larger.
        rawBytes <= request.maxBytes + request.maxBytes / 100 + 1024 ? true : stopAsTooLarge()
    }

    /// Copies the next part of the request body into `buffer`, and returns its length.
    func upload(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let part = request.body[uploaded...].prefix(buffer.count)
        part.withUnsafeBytes { buffer.copyMemory(from: $0) }
        uploaded += part.count
        return part.count
    }

    /// Rewinds the request body to `offset`. Returns false if the offset is out of range.
    func rewind(to offset: Int) -> Bool {
        guard (0...request.body.count).contains(offset) else { return false }
        uploaded = offset
        return true
    }

    /// Returns true if a connection to `address` may be opened.
    func mayDial(_ address: SocketAddress) -> Bool {
        isConnecting = true
        if allowsAddress(address) { return true }
        refused = address
        return false
    }

    /// Records that a connection is established and the request is about to be sent.
    func connected() {
        isConnecting = false
        refused = nil
    }

    private func stopAsTooLarge() -> Bool {
        failure = CurlError(.tooLarge, "the body is larger than \(request.maxBytes) bytes")
        return false
    }

    /// Checks Content-Length before the first byte, and rejects a body that is too large immediately.
    private func makeRoom() -> Bool {
        guard head.headers["Content-Encoding"] == nil, let length = easy?.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        else {
            return true
        }
        if length > request.maxBytes { return stopAsTooLarge() }
        // libcurl returns -1 if the length is unknown.
        expected = length < 0 ? nil : length
        return true
    }

    // MARK: Admission

    /// A wait for more bytes, during which the transfer's timeout is suspended.
    private struct Pause {
        let start = ContinuousClock.now
        let wait: Task<Void, Never>
    }

    private func waitForAdmission(of bytes: Int) {
        guard let admission else { return }
        easy?.setTimeout(nil)
        pause = Pause(
            wait: Task { [self, onAdmission] in
                // A cancelled wait belongs to a transfer that has ended.
                guard let admitted = try? await admission.more(bytes) else { return }
                onAdmission(self, admitted)
            })
    }

    /// Resumes the transfer after admission of more bytes.
    func resume(holding bytes: Int) {
        guard let pause, let easy else { return }
        self.pause = nil
        admitted = bytes
        start += pause.start.duration(to: .now)
        // libcurl counts from the start, including pauses.
        paused += pause.start.duration(to: .now)
        easy.setTimeout(request.timeout + paused)
        easy.unpause()
    }

    // MARK: Completion

    /// Completes the transfer with its result.
    func finish(_ result: CURLcode, _ easy: EasyHandle) {
        if result == CURLE_OK {
            answer(.success(response(easy)))
        } else {
            var error = failure ?? error(result, easy)
            if head.status > 0 { error.status = head.status }
            answer(.failure(error))
        }
        body = []
    }

    private func error(_ result: CURLcode, _ easy: EasyHandle) -> CurlError {
        var error = CurlError(code(of: result), message(for: result, easy))
        if head.status > 0, !body.isEmpty { error.partial = response(easy) }
        return error
    }

    private func response(_ easy: EasyHandle) -> HTTPResponse {
        func time(_ info: CURLINFO) -> Duration { .microseconds(easy.offset(info) ?? 0) }
        return HTTPResponse(
            status: head.status, headers: head.headers, body: body,
            effectiveURL: easy.string(CURLINFO_EFFECTIVE_URL) ?? request.url,
            redirectURL: easy.string(CURLINFO_REDIRECT_URL),
            remoteAddress: easy.string(CURLINFO_PRIMARY_IP).flatMap {
                SocketAddress($0, port: UInt16(clamping: easy.long(CURLINFO_PRIMARY_PORT) ?? 0))
            },
            timings: HTTPResponse.Timings(
                nameLookup: time(CURLINFO_NAMELOOKUP_TIME_T), connect: time(CURLINFO_CONNECT_TIME_T),
                tls: time(CURLINFO_APPCONNECT_TIME_T), firstByte: time(CURLINFO_STARTTRANSFER_TIME_T),
                total: time(CURLINFO_TOTAL_TIME_T)))
    }

    private func message(for result: CURLcode, _ easy: EasyHandle) -> String {
        if result == CURLE_COULDNT_CONNECT, let refused { return "the address \(refused.host) is not allowed" }
        return easy.errorText ?? String(cString: curl_easy_strerror(result))
    }

    private func code(of result: CURLcode) -> CurlError.Code {
        switch result {
        case CURLE_COULDNT_CONNECT: refused == nil ? .cannotConnect : .refusedAddress
        case CURLE_OPERATION_TIMEDOUT: .timeout(limit())
        // After a connection was established, this means that the response was not HTTP/1 (libcurl treats it as
        // HTTP/0.9).
        case CURLE_UNSUPPORTED_PROTOCOL where !isConnecting: .protocolError
        default: CurlError.Code(result)
        }
    }

    /// Determines the timeout that has expired. libcurl has one code for all of them, and its text must not be parsed.
    /// So this works by elimination on a separate clock. The margin of one percent is needed because libcurl reads its
    /// clock at other moments.
    private func limit() -> CurlError.Limit {
        let elapsed = start.duration(to: .now) * 1.01
        if elapsed >= request.timeout { return .transfer }
        if isConnecting { return .connect }
        guard let stall = request.stall, elapsed >= stall.duration else { return .transfer }
        return .stall
    }
}

extension CurlError.Code {
    /// Maps an error code of libcurl (libcurl-errors(3)), if the code alone determines the kind of failure.
    init(_ result: CURLcode) {
        self =
            switch result {
            case CURLE_URL_MALFORMAT: .badURL
            case CURLE_UNSUPPORTED_PROTOCOL: .unsupportedScheme
            case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .nameNotResolved
            case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ENGINE_NOTFOUND,
                CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED,
                CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_SHUTDOWN_FAILED, CURLE_SSL_CRL_BADFILE,
                CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS,
                CURLE_SSL_CLIENTCERT:
                .tls
            case CURLE_TOO_MANY_REDIRECTS: .tooManyRedirects
            case CURLE_FILESIZE_EXCEEDED: .tooLarge
            // In HTTP/2, the peer also ends a transfer with RST_STREAM or GOAWAY.
            case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_HTTP2,
                CURLE_HTTP2_STREAM:
                .interrupted
            case CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING: .protocolError
            default: .other
            }
    }
}

/// The head of a response, parsed from the lines that libcurl delivers: all lines of all responses of a transfer, one
/// by one.
///
/// A pure value. Each status line starts a new head, so in the end it holds that of the last response. Redirects and
/// interim responses (RFC 9110, 15.2) are discarded.
struct ResponseHead {
    /// The maximum size of all headers of a transfer in bytes: several times the size that servers send and clients
    /// accept.
    static let limit = 1 << 18

    private(set) var status = 0
    private(set) var headers = HTTPFields()
    private var size = 0
    private var isComplete = false

    /// True if the response is a redirect.
    var isRedirect: Bool { (300..<400).contains(status) && headers["Location"] != nil }

    /// The kind of a parsed line.
    enum Line { case status, field, end, trailer, tooMuch }

    /// Parses a line, including its line break. Invalid UTF-8 is replaced.
    mutating func take(_ line: [UInt8]) -> Line {
        size += line.count
        if size > Self.limit { return .tooMuch }
        if line.starts(with: "HTTP/".utf8) {
            status = line.split(separator: 0x20).dropFirst().first.flatMap { Int(text($0)) } ?? 0
            headers = HTTPFields()
            isComplete = false
            return .status
        }
        // Fields after the body do not belong to a head (RFC 9110, 6.5).
        if isComplete { return .trailer }
        if line.allSatisfy(isBlank) {
            isComplete = true
            return .end
        }
        if isBlank(line[0]) {
            headers.continueLast(text(line[...]))
        } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
            headers.add(text(line[..<colon]), text(line[(colon + 1)...]))
        }
        return .field
    }
}

private func isBlank(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0d, 0x0a].contains(byte) }

/// The text without surrounding spaces, tabs and line breaks.
private func text(_ bytes: ArraySlice<UInt8>) -> String {
    let start = bytes.drop(while: isBlank)
    let end = start.lastIndex { !isBlank($0) } ?? start.startIndex - 1
    return String(decoding: start.isEmpty ? [] : start[...end], as: UTF8.self)
}
