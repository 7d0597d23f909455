import CMicroHTTP

/// A response in libmicrohttpd's form, which it owns until it is queued.
struct Answer: ~Copyable {
    private let handle: OpaquePointer?
    private let status: Int

    /// - Parameters:
    ///   - closing: whether the connection is closed behind it.
    ///   - exchange: what reads a body that is not handed over as a whole; without one such a body is left out.
    init(_ response: HTTPServer.Response, closing: Bool, _ exchange: Exchange? = nil) {
        status = response.status
        handle =
            switch response.body {
            case .none: Self.whole([])
            case .bytes(let bytes):
                if bytes.count > Download.wholeLimit, let exchange {
                    Self.streamed(length: bytes.count, exchange)
                } else {
                    Self.whole(bytes)
                }
            case .stream(let length, _):
                if let exchange { Self.streamed(length: length, exchange) } else { Self.whole([]) }
            }
        guard let handle else { return }
        // libmicrohttpd 0.9.75 sends the last chunk of a body even where there is none, as for HEAD: the next answer would begin with it.
        if case .stream(length: nil, _) = response.body, let exchange, !exchange.sendsBody(response) {
            _ = cmicrohttp_end_with_connection(handle)
        }
        Self.add(response.headers, to: handle)
        if closing { MHD_add_response_header(handle, "Connection", "close") }
    }

    deinit {
        if let handle { MHD_destroy_response(handle) }
    }

    /// Has it sent. `MHD_NO`, which closes the connection, where that cannot be.
    func queue(on connection: OpaquePointer) -> MHD_Result {
        guard let handle else { return .NO }
        return MHD_queue_response(connection, UInt32(clamping: status), handle)
    }

    static func add(_ headers: HTTPServer.Headers, to handle: OpaquePointer) {
        for field in headers.fields { MHD_add_response_header(handle, field.name, field.value) }
    }

    /// A response with these bytes, which are copied.
    static func whole(_ bytes: [UInt8]) -> OpaquePointer? {
        bytes.withUnsafeBytes { bytes in
            MHD_create_response_from_buffer(
                bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress), .RESPMEM_MUST_COPY)
        }
    }

    private static func streamed(length: Int?, _ exchange: Exchange) -> OpaquePointer? {
        let context = Unmanaged.passRetained(exchange)
        let length = length.map { UInt64($0) } ?? UInt64.max
        let handle = MHD_create_response_from_callback(
            length, Download.blockBytes, onRead, context.toOpaque(), onReadEnd)
        if handle == nil { context.release() }
        return handle
    }
}
