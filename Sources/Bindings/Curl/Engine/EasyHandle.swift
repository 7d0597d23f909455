import CCurl
import Glibc

/// A libcurl easy handle, reused for one transfer after another, because creating one costs more than a short transfer.
///
/// It belongs to the client's thread.
final class EasyHandle {
    let handle: UnsafeMutableRawPointer
    private let errors: UnsafeMutablePointer<CChar>
    private var headers: UnsafeMutablePointer<curl_slist>?

    /// Creates a handle.
    /// - Throws: ``CurlError/Code/other`` if there is no memory.
    init() throws(CurlError) {
        guard let made = curl_easy_init() else { throw CurlError(.other, "out of memory while creating a transfer") }
        handle = made
        errors = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errors.pointee = 0
    }

    deinit {
        curl_easy_cleanup(handle)
        curl_slist_free_all(headers)
        errors.deallocate()
    }

    /// The error text from libcurl, if there is one.
    var errorText: String? { errors.pointee == 0 ? nil : String(cString: errors) }

    /// Resets the handle, but retains the state that makes the next transfer faster.
    func reset() {
        curl_easy_reset(handle)
        curl_slist_free_all(headers)
        headers = nil
        errors.pointee = 0
    }

    /// Sets all options for `transfer`, which must outlive its use here.
    /// - Throws: ``CurlError/Code/other`` if libcurl rejects an option, as a build without HTTP would.
    func prepare(_ transfer: Transfer, _ settings: CurlSettings) throws(CurlError) {
        let request = transfer.request
        var options = Options(handle)
        options.set(CURLOPT_ERRORBUFFER, UnsafeMutableRawPointer(errors))
        options.set(CURLOPT_URL, request.url)
        setMethod(request, &options)
        setHeaders(request, settings, &options)
        if let signature = request.signature { setSignature(signature, &options) }
        setLimits(request, &options)
        setPolicy(settings, &options)
        setCallbacks(Unmanaged.passUnretained(transfer).toOpaque(), &options)
        if let error = options.error { throw error }
    }

    private func setMethod(_ request: HTTPRequest, _ options: inout Options) {
        switch request.method {
        case .get: options.set(CURLOPT_HTTPGET, 1)
        case .head: options.set(CURLOPT_NOBODY, 1)
        case .post:
            options.set(CURLOPT_POST, 1)
            options.setOffset(CURLOPT_POSTFIELDSIZE_LARGE, request.body.count)
        case .put:
            options.set(CURLOPT_UPLOAD, 1)
            options.setOffset(CURLOPT_INFILESIZE_LARGE, request.body.count)
        case .delete, .purge, .ban: options.set(CURLOPT_CUSTOMREQUEST, request.method.rawValue)
        }
    }

    private func setHeaders(_ request: HTTPRequest, _ settings: CurlSettings, _ options: inout Options) {
        for field in request.headers.fields {
            // Without a value, "Name:" would remove the header; "Name;" sends it empty.
            headers = curl_slist_append(
                headers, field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
        }
        if request.method == .post || request.method == .put {
            // Avoids a round trip for "100 Continue", and a content type that the caller has not set. libcurl 7.88
            // would sign a header that it removes; without the lines it sends none of them for a small body with a
            // type.
            if request.signature == nil, request.headers["Expect"] == nil {
                headers = curl_slist_append(headers, "Expect:")
            }
            if request.headers["Content-Type"] == nil { headers = curl_slist_append(headers, "Content-Type:") }
        }
        options.set(CURLOPT_HTTPHEADER, headers)
        if let userAgent = settings.userAgent { options.set(CURLOPT_USERAGENT, userAgent) }
        // An empty value means all encodings that this libcurl can decode.
        if request.acceptsCompression { options.set(CURLOPT_ACCEPT_ENCODING, "") }
    }

    private func setSignature(_ signature: HTTPRequest.Signature, _ options: inout Options) {
        options.set(CURLOPT_AWS_SIGV4, "aws:amz:\(signature.region):\(signature.service)")
        options.set(CURLOPT_USERNAME, signature.accessKey)
        options.set(CURLOPT_PASSWORD, signature.secretKey)
    }

    /// Sets the limits of the transfer. CURLOPT_BUFFERSIZE is not set, because libcurl rejects it on a handle whose
    /// last HTTP/2 connection still serves others.
    private func setLimits(_ request: HTTPRequest, _ options: inout Options) {
        options.set(CURLOPT_CONNECTTIMEOUT_MS, request.connectTimeout.wholeMilliseconds)
        options.set(CURLOPT_TIMEOUT_MS, request.timeout.wholeMilliseconds)
        if let stall = request.stall {
            options.set(CURLOPT_LOW_SPEED_LIMIT, stall.bytesPerSecond)
            options.set(CURLOPT_LOW_SPEED_TIME, (stall.duration.wholeMilliseconds + 999) / 1000)
        }
        options.set(CURLOPT_FOLLOWLOCATION, request.maxRedirects > 0 ? 1 : 0)
        options.set(CURLOPT_MAXREDIRS, request.maxRedirects)
    }

    private func setPolicy(_ settings: CurlSettings, _ options: inout Options) {
        options.set(CURLOPT_PROTOCOLS_STR, "http,https")
        options.set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https")
        options.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        // An empty value disables proxies from environment variables.
        options.set(CURLOPT_PROXY, "")
        options.set(CURLOPT_NOSIGNAL, 1)
        // A DNS lookup that hangs is left to end on its own. Waiting for its thread would block every transfer.
        options.set(CURLOPT_QUICK_EXIT, 1)
        if let authorities = settings.authorities {
            options.set(CURLOPT_CAINFO, authorities)
            options.set(CURLOPT_CAPATH, nil as String?)
        }
    }

    private func setCallbacks(_ transfer: UnsafeMutableRawPointer, _ options: inout Options) {
        options.set(CURLOPT_PRIVATE, transfer)
        for option in [
            CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_READDATA, CURLOPT_SEEKDATA, CURLOPT_XFERINFODATA,
            CURLOPT_OPENSOCKETDATA, CURLOPT_PREREQDATA,
        ] { options.set(option, transfer) }
        options.note(CURLOPT_WRITEFUNCTION, ccurl_set_on_body(handle, onBody))
        options.note(CURLOPT_HEADERFUNCTION, ccurl_set_on_header(handle, onHeader))
        options.note(CURLOPT_READFUNCTION, ccurl_set_on_upload(handle, onUpload))
        options.note(CURLOPT_SEEKFUNCTION, ccurl_set_on_rewind(handle, onRewind))
        options.note(CURLOPT_XFERINFOFUNCTION, ccurl_set_on_progress(handle, onProgress))
        options.note(CURLOPT_OPENSOCKETFUNCTION, ccurl_set_on_dial(handle, onDial))
        options.note(CURLOPT_PREREQFUNCTION, ccurl_set_on_connected(handle, onConnected))
        options.set(CURLOPT_NOPROGRESS, 0)
    }

    // MARK: During a transfer

    /// Sets the maximum duration of the transfer from its start; nil for no limit.
    func setTimeout(_ timeout: Duration?) {
        _ = ccurl_set_long(handle, CURLOPT_TIMEOUT_MS, timeout?.wholeMilliseconds ?? 0)
    }

    /// Resumes a transfer that a callback has paused. The callback may run again before this returns.
    func unpause() { curl_easy_pause(handle, CURLPAUSE_CONT) }

    // MARK: After a transfer

    func long(_ info: CURLINFO) -> Int? {
        var value = 0
        return ccurl_get_long(handle, info, &value) == CURLE_OK ? value : nil
    }

    /// Returns nil if libcurl does not know the value, which it reports as -1.
    func offset(_ info: CURLINFO) -> Int? {
        var value: curl_off_t = 0
        return ccurl_get_offset(handle, info, &value) == CURLE_OK && value >= 0 ? Int(value) : nil
    }

    func string(_ info: CURLINFO) -> String? {
        var value: UnsafePointer<CChar>?
        guard ccurl_get_string(handle, info, &value) == CURLE_OK, let value else { return nil }
        return String(cString: value)
    }
}

/// Sets options and records the first error.
private struct Options {
    private let handle: UnsafeMutableRawPointer
    private(set) var error: CurlError?

    init(_ handle: UnsafeMutableRawPointer) { self.handle = handle }

    mutating func note(_ option: CURLoption, _ result: CURLcode) {
        guard result != CURLE_OK && error == nil else { return }
        let name = curl_easy_option_by_id(option).map { String(cString: $0.pointee.name) } ?? "\(option.rawValue)"
        error = CurlError(.other, "libcurl rejected the option \(name): \(String(cString: curl_easy_strerror(result)))")
    }

    mutating func set(_ option: CURLoption, _ value: Int) { note(option, ccurl_set_long(handle, option, value)) }
    mutating func set(_ option: CURLoption, _ value: String?) {
        note(option, ccurl_set_string(handle, option, value))
    }
    mutating func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer) {
        note(option, ccurl_set_pointer(handle, option, value))
    }
    mutating func set(_ option: CURLoption, _ value: UnsafeMutablePointer<curl_slist>?) {
        note(option, ccurl_set_list(handle, option, value))
    }
    mutating func setOffset(_ option: CURLoption, _ value: Int) {
        note(option, ccurl_set_offset(handle, option, curl_off_t(value)))
    }
}

extension Duration {
    /// The duration in milliseconds, rounded up. It is at least 1, because 0 means no limit or the default to libcurl,
    /// and at most 23 days, because libcurl accepts only an int.
    fileprivate var wholeMilliseconds: Int {
        Int(max(1, min((self / .milliseconds(1)).rounded(.up), 2_000_000_000)))
    }
}

// libcurl calls these on the client's thread. They are plain functions, because a closure created in isolated code
// would trap.

private func transfer(_ context: UnsafeMutableRawPointer?) -> Transfer {
    Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue()
}

func onBody(_ bytes: UnsafeMutablePointer<CChar>?, _: Int, _ count: Int, _ context: UnsafeMutableRawPointer?) -> Int {
    switch transfer(context).received(bodyPart: UnsafeRawBufferPointer(start: bytes, count: count)) {
    case .accepted: return count
    case .paused: return Int(CURL_WRITEFUNC_PAUSE)
    // Returning another count stops the transfer.
    case .refused: return 0
    }
}

func onHeader(_ bytes: UnsafeMutablePointer<CChar>?, _: Int, _ count: Int, _ context: UnsafeMutableRawPointer?) -> Int {
    transfer(context).received(headLine: UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
}

func onUpload(_ buffer: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?)
    -> Int
{
    transfer(context).upload(into: UnsafeMutableRawBufferPointer(start: buffer, count: size * count))
}

func onRewind(_ context: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: Int32) -> Int32 {
    let done = origin == SEEK_SET && transfer(context).rewind(to: Int(offset))
    return done ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
}

func onProgress(
    _ context: UnsafeMutableRawPointer?, _: curl_off_t, _ received: curl_off_t, _: curl_off_t, _: curl_off_t
) -> Int32 {
    transfer(context).received(rawBytes: Int(received)) ? 0 : 1
}

func onDial(
    _ context: UnsafeMutableRawPointer?, _: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let address else { return CURL_SOCKET_BAD }
    let bytes = UnsafeRawBufferPointer(start: ccurl_address(address), count: Int(address.pointee.addrlen))
    guard let wanted = SocketAddress(family: address.pointee.family, bytes), transfer(context).mayDial(wanted) else {
        return CURL_SOCKET_BAD
    }
    let type = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
    return socket(address.pointee.family, type, address.pointee.protocol)
}

func onConnected(
    _ context: UnsafeMutableRawPointer?, _: UnsafeMutablePointer<CChar>?, _: UnsafeMutablePointer<CChar>?, _: Int32,
    _: Int32
) -> Int32 {
    transfer(context).connected()
    return CURL_PREREQFUNC_OK
}
