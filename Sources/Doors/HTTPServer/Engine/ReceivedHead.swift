import CMicroHTTP

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

private func receivedHeaders(_ connection: OpaquePointer) -> HTTPServer.Headers {
    var fields: [HTTPServer.Headers.Field] = []
    fields.reserveCapacity(16)
    withUnsafeMutablePointer(to: &fields) { fields in
        _ = MHD_get_connection_values_n(connection, MHD_ValueKind.HEADER_KIND, addHeader, fields)
    }
    return HTTPServer.Headers(fields)
}

private func addHeader(
    _ context: UnsafeMutableRawPointer?, _: MHD_ValueKind, _ name: UnsafePointer<CChar>?, _ nameSize: Int,
    _ value: UnsafePointer<CChar>?, _ valueSize: Int
) -> MHD_Result {
    var end = valueSize
    // It leaves the blanks behind a value.
    while end > 0, let last = value?[end - 1], last == 0x20 || last == 0x09 { end -= 1 }
    context!.assumingMemoryBound(to: [HTTPServer.Headers.Field].self).pointee.append(
        HTTPServer.Headers.Field(text(name, nameSize), text(value, end)))
    return .YES
}

private func text(_ bytes: UnsafePointer<CChar>?, _ count: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count), as: UTF8.self)
}
