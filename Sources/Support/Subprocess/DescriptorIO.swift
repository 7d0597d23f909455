import Glibc

/// Complete reads and writes of file descriptors. The calls block.
public enum DescriptorIO {
    /// Writes all bytes, with repeated calls if needed.
    /// - Returns: 0, or errno(3) of the call that failed.
    public static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
        bytes.withUnsafeBytes { buffer in
            var count = 0
            while count < buffer.count {
                let more = write(descriptor, buffer.baseAddress! + count, buffer.count - count)
                if more < 0, errno == EINTR { continue }
                // The call wrote nothing, and repeating it would not help.
                guard more != 0 else { return EIO }
                guard more > 0 else { return errno }
                count += more
            }
            return 0
        }
    }

    /// Reads up to `size` bytes, with repeated calls if needed.
    /// - Returns: The bytes up to the end of the file, and 0 or errno(3) of the call that failed.
    public static func readAll(_ size: Int, from descriptor: Int32) -> (bytes: [UInt8], failure: Int32) {
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            while count < buffer.count {
                let more = read(descriptor, buffer.baseAddress! + count, buffer.count - count)
                if more < 0, errno == EINTR { continue }
                if more < 0 { failure = errno }
                if more <= 0 { break }
                count += more
            }
        }
        return (bytes, failure)
    }
}
