import Glibc

/// Writes all of the bytes, however many calls that takes.
/// - Returns: 0, or errno(3) of the call that failed.
func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
    bytes.withUnsafeBytes { buffer in
        var count = 0
        while count < buffer.count {
            let more = write(descriptor, buffer.baseAddress! + count, buffer.count - count)
            if more < 0, errno == EINTR { continue }
            // None of at least one byte: the same call would give the same again.
            guard more != 0 else { return EIO }
            guard more > 0 else { return errno }
            count += more
        }
        return 0
    }
}
