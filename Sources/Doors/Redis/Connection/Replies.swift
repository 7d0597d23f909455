import CHiredis

extension RedisValue {
    /// Copies a reply of hiredis, which frees its own when the callback returns.
    init(_ reply: UnsafePointer<redisReply>) {
        var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: reply.pointee.str, count: reply.pointee.len) }
        switch chiredis_kind_of(reply) {
        case chiredis_integer: self = .integer(Int(reply.pointee.integer))
        case chiredis_string: self = .bytes(Array(bytes))
        case chiredis_status: self = .status(String(decoding: bytes, as: UTF8.self))
        case chiredis_error: self = .error(RedisError(reply: String(decoding: bytes, as: UTF8.self)))
        case chiredis_array:
            let elements = UnsafeBufferPointer(start: reply.pointee.element, count: reply.pointee.elements)
            self = .array(elements.map { $0.map { RedisValue($0) } ?? .null })
        case chiredis_double: self = .double(chiredis_double_of(reply))
        case chiredis_boolean: self = .boolean(reply.pointee.integer != 0)
        default: self = .null
        }
    }
}
