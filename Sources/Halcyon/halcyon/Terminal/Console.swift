import Glibc

/// Standard output and standard error.
enum Console {
    /// Writes a text and a line break to standard output, at once.
    static func print(_ text: String) {
        write(Array((text.hasSuffix("\n") ? text : text + "\n").utf8), to: STDOUT_FILENO)
    }

    /// Says on standard error what is wrong.
    static func complain(_ text: String) {
        write(Array("halcyon: \(text)\n".utf8), to: STDERR_FILENO)
    }

    /// Writes all bytes. Who reads may have gone: then nothing is left to be done about it.
    static func write(_ bytes: [UInt8], to descriptor: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                if errno == EINTR || errno == EAGAIN { continue }
                return
            }
            rest = rest.dropFirst(count)
        }
    }
}
