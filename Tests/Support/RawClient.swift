import Concurrency
import Glibc

/// An HTTP client that sends arbitrary bytes over a connection of its own. It never blocks a thread, because handlers
/// run on the same few threads as tests.
public final class RawClient: Sendable {
    /// A received response.
    public struct RawResponse: Sendable {
        /// The status code; 0 if it is not a number.
        public let status: Int
        /// The headers, with names in lower case.
        public let headers: [String: String]
        /// The body without its framing.
        public let body: [UInt8]
        /// The body as text.
        public var text: String { String(decoding: body, as: UTF8.self) }
    }

    /// An error for a connection that has ended.
    public struct Closed: Error {
        /// Creates the error.
        public init() {}
    }

    /// The socket of the connection.
    public let socket: Int32
    private let unread = Lock<[UInt8]>([])

    /// Connects to a port of 127.0.0.1.
    /// - Parameters:
    ///   - port: The port of the server.
    ///   - address: The local address of the client, within 127.0.0.0/8.
    ///   - receiveBuffer: The size of the socket's receive buffer in bytes, for a client that does not read.
    public init(_ port: UInt16, from address: String = "127.0.0.1", receiveBuffer: Int32? = nil) throws {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        socket = Glibc.socket(AF_INET, kind, 0)
        if var receiveBuffer {
            setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<Int32>.size))
        }
        let bound = Self.with(address, 0) { bind(socket, $0, $1) }
        // The connection enters the backlog, so this does not wait for the server to accept it.
        guard bound == 0, Self.with("127.0.0.1", port, { connect(socket, $0, $1) }) == 0 else {
            // The deinitializer closes the socket, because all properties are set. To close it here, too, would close
            // the descriptor of another thread that has just been given the same number.
            throw Closed()
        }
    }

    deinit { close(socket) }

    private static func with(
        _ host: String, _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, host, &address.sin_addr)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
    }

    // MARK: Sending

    /// Sends a text. Discards the rest if the server closes the connection.
    public func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    /// Sends bytes. Discards the rest if the server closes the connection.
    public func send(_ bytes: [UInt8]) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = offer(rest)
            if count < 0 { return }
            rest = rest.dropFirst(count)
            if !rest.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
        }
    }

    /// Sends as many bytes as the kernel accepts at once.
    /// - Returns: The number of bytes sent; -1 if the connection has ended.
    public func offer(_ bytes: ArraySlice<UInt8>) -> Int {
        let count = bytes.withUnsafeBytes {
            Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        }
        if count >= 0 { return count }
        return errno == EAGAIN ? 0 : -1
    }

    /// Shuts down the sending side of the connection.
    public func closeWriting() { shutdown(socket, Int32(SHUT_WR)) }

    // MARK: Receiving

    /// Returns the bytes received so far, without waiting; nil at the end of the connection.
    public func receive() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        let count = recv(socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        if count > 0 { return Array(buffer.prefix(count)) }
        return count == 0 || errno != EAGAIN ? nil : []
    }

    /// Waits for more bytes and appends them to the unread ones.
    /// - Returns: False at the end of the connection.
    private func receiveMore() async throws -> Bool {
        let timeout = ContinuousClock.now + .patience
        while ContinuousClock.now < timeout {
            guard let bytes = receive() else { return false }
            if !bytes.isEmpty {
                unread.withLock { $0 += bytes }
                return true
            }
            try await Task.sleep(for: .milliseconds(2))
        }
        throw ConditionTimeout(description: "no bytes received within 120 s")
    }

    private func bytes(_ count: Int) async throws -> [UInt8] {
        while unread.withLock({ $0.count }) < count { if !(try await receiveMore()) { throw Closed() } }
        return unread.withLock { unread in
            defer { unread.removeFirst(count) }
            return Array(unread.prefix(count))
        }
    }

    /// Reads the next line, without its line break.
    public func line() async throws -> String {
        while true {
            let end = unread.withLock { $0.firstIndex(of: 10) }
            if let end {
                return String(decoding: try await bytes(end + 1).dropLast(2), as: UTF8.self)
            }
            if !(try await receiveMore()) { throw Closed() }
        }
    }

    /// Reads the head of the next response.
    public func head() async throws -> RawResponse {
        let status = try await line().split(separator: " ")
        var headers: [String: String] = [:]
        while case let line = try await line(), !line.isEmpty {
            let parts = line.split(separator: ":", maxSplits: 1)
            headers[parts[0].lowercased()] = parts.count == 2 ? String(parts[1].drop { $0 == " " }) : ""
        }
        return RawResponse(status: Int(status.dropFirst().first ?? "") ?? 0, headers: headers, body: [])
    }

    /// Reads the next complete response, skipping `100 Continue`.
    /// - Throws: ``Closed`` if the connection ends before the response is complete.
    public func answer(toHead: Bool = false) async throws -> RawResponse {
        var head = try await head()
        while head.status == 100 { head = try await self.head() }
        if toHead || head.status == 204 || head.status == 304 { return head }
        var body: [UInt8] = []
        if head.headers["transfer-encoding"] == "chunked" {
            while let part = try await chunk() { body += part }
        } else if let length = head.headers["content-length"].flatMap({ Int($0) }) {
            body = try await bytes(length)
        } else {
            body = try await rest()
        }
        return RawResponse(status: head.status, headers: head.headers, body: body)
    }

    /// Reads the next chunk; nil for the last one.
    public func chunk() async throws -> [UInt8]? {
        let size = Int(try await line(), radix: 16) ?? 0
        let part = try await bytes(size)
        _ = try await line()
        return size == 0 ? nil : part
    }

    /// Reads all bytes until the connection ends.
    public func rest() async throws -> [UInt8] {
        while try await receiveMore() {}
        return unread.withLock { unread in
            defer { unread = [] }
            return unread
        }
    }

    /// Sends a GET request and reads its response.
    public func get(_ target: String, _ headers: String = "") async throws -> RawResponse {
        try await ask("GET", target, headers)
    }

    /// Sends a request without a body and reads its response.
    /// - Parameter headers: Header lines, each with CR and LF at its end.
    public func ask(_ method: String, _ target: String, _ headers: String = "") async throws -> RawResponse {
        try await send("\(method) \(target) HTTP/1.1\r\nHost: localhost\r\n\(headers)\r\n")
        return try await answer(toHead: method == "HEAD")
    }
}
