import Glibc

/// One end of a stream socket between this process and its child that transfers whole messages: a header, which
/// describes the message, and any number of bodies, which are raw bytes.
///
/// The wire format, in native byte order: the length of the header and the number of bodies as 32 bits each, the length
/// of each body as 64 bits, the header, the bodies. Calls block: never make them on a task's thread.
public final class MessageSocket: Sendable {
    /// A message with a header and bodies.
    public struct Message: Sendable {
        /// The description of the message.
        public var header: [UInt8]
        /// The raw data.
        public var bodies: [[UInt8]]

        /// Creates a message.
        public init(header: [UInt8], bodies: [[UInt8]] = []) {
            self.header = header
            self.bodies = bodies
        }
    }

    /// Limits on messages from the other end, which may not be trusted.
    public struct Limits: Sendable {
        /// Maximum size of a header in bytes.
        public var header = 1 << 20
        /// Maximum number of bodies.
        public var bodies = 1024
        /// Maximum size of all bodies together, in bytes.
        public var bytes: Int

        /// Creates limits.
        /// - Parameter bytes: The maximum size of all bodies together.
        public init(bytes: Int) { self.bytes = bytes }
    }

    private let descriptor: Int32

    /// Creates a socket that owns the descriptor of a stream socket.
    public init(owning descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// Creates two connected ends: one for this process, and a descriptor for the child, which the caller closes.
    /// - Throws: ``MessageError`` if no descriptor is available.
    public static func pair() throws(MessageError) -> (own: MessageSocket, childs: Int32) {
        guard let (own, childs) = socketPair() else { throw .system(errno: errno) }
        return (MessageSocket(owning: own), childs)
    }

    /// Sends a message.
    /// - Throws: ``MessageError``, `ended` if no process has the other end open.
    public func send(_ message: Message) throws(MessageError) {
        var start: [UInt8] = []
        start.reserveCapacity(8 + 8 * message.bodies.count + message.header.count)
        append(UInt32(message.header.count), to: &start)
        append(UInt32(message.bodies.count), to: &start)
        for body in message.bodies { append(UInt64(body.count), to: &start) }
        start += message.header
        try send(start)
        for body in message.bodies { try send(body) }
    }

    /// Waits for a message.
    /// - Returns: The message; nil if the other end was closed after the last whole message.
    /// - Throws: ``MessageError``.
    public func receive(_ limits: Limits) throws(MessageError) -> Message? {
        guard let counts = try receive(8, mayEnd: true) else { return nil }
        let header = integer(UInt32.self, counts, at: 0)
        let count = integer(UInt32.self, counts, at: 4)
        guard header <= limits.header, count <= limits.bodies else { throw .tooLarge }
        let lengths = try receive(8 * Int(count))
        var (sizes, left): ([Int], Int) = ([], limits.bytes)
        for index in 0..<Int(count) {
            guard let size = Int(exactly: integer(UInt64.self, lengths, at: 8 * index)), size <= left else {
                throw .tooLarge
            }
            sizes.append(size)
            left -= size
        }
        var message = Message(header: try receive(Int(header)))
        for size in sizes { message.bodies.append(try receive(size)) }
        return message
    }

    /// Waits until input is available, which may be the end of the stream, or until the timeout.
    /// - Returns: True if input is available.
    public func hasInput(within milliseconds: Int32) -> Bool {
        var input = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&input, 1, milliseconds) > 0
    }

    /// Ends the connection in both directions, so that waits for messages end. May be called from any thread.
    public func shutdown() { _ = Glibc.shutdown(descriptor, Int32(SHUT_RDWR)) }

    // MARK: Bytes

    private func send(_ bytes: [UInt8]) throws(MessageError) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + done, $0.count - done, Int32(MSG_NOSIGNAL))
            }
            if count >= 0 {
                done += count
            } else if errno != EINTR {
                throw .last
            }
        }
    }

    private func receive(_ count: Int) throws(MessageError) -> [UInt8] {
        guard let bytes = try receive(count, mayEnd: false) else { throw .ended }
        return bytes
    }

    /// Receives `count` bytes; nil if the other end is closed before the first of them and `mayEnd` is true.
    private func receive(_ count: Int, mayEnd: Bool) throws(MessageError) -> [UInt8]? {
        var failure: MessageError?
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, done in
            while done < count {
                let part = recv(descriptor, buffer.baseAddress! + done, count - done, Int32(MSG_WAITALL))
                if part > 0 {
                    done += part
                } else if part == 0 {
                    failure = .ended
                    return
                } else if errno != EINTR {
                    failure = .last
                    return
                }
            }
        }
        guard let failure else { return bytes }
        if failure == .ended, bytes.isEmpty, mayEnd { return nil }
        throw failure
    }
}

/// An error sending or receiving a message.
public enum MessageError: Error, Equatable {
    /// The other end is closed.
    case ended
    /// The other end sent more than the limits allow.
    case tooLarge
    /// A system error.
    case system(errno: Int32)

    fileprivate static var last: MessageError {
        errno == EPIPE || errno == ECONNRESET ? .ended : .system(errno: errno)
    }
}

private func append<Number: FixedWidthInteger>(_ number: Number, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: number) { bytes += $0 }
}

private func integer<Number: FixedWidthInteger>(_ type: Number.Type, _ bytes: [UInt8], at offset: Int) -> Number {
    bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: type) }
}
