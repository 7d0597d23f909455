import Concurrency
import Glibc
import Subprocess

/// A scripted HTTP origin for responses that a real server would not send: arbitrary bytes, pauses, false headers and
/// premature ends.
public final class RawOrigin: Sendable {
    /// A received request.
    public struct Request: Sendable {
        /// The request line and the headers.
        public let head: String
        /// The body, of the length given by Content-Length.
        public let body: [UInt8]
        /// The request target: the path with its query.
        public var path: String { String(head.split(separator: " ").dropFirst().first ?? "") }
    }

    /// A step of the response to a request.
    public enum Step: Sendable {
        /// Sends text.
        case text(String)
        /// Sends bytes.
        case bytes([UInt8])
        /// Sleeps for a duration.
        case pause(Duration)
        /// Waits until a condition is true. After two minutes the connection is closed.
        case wait(until: @Sendable () -> Bool)
        /// Sends a number of zero bytes, or as many as the client accepts.
        case zeros(Int)
        /// Waits until the client closes the connection.
        case awaitEnd
        /// Closes the connection.
        case close
        /// Resets the connection.
        case reset
    }

    private struct Log {
        var requests: [Request] = []
        var connections = 0
        var cuts = 0
        var open: Set<Int32> = []
        var isStopping = false
        var isAccepting = true
    }

    /// The port that the origin listens on, on every address of 127.0.0.0/8.
    public let port: UInt16
    private let listener: Int32
    private let log = Lock(Log())
    private let keepsLog: Bool
    private let script: @Sendable (Request) -> [Step]

    /// Starts an origin that responds to each request with the steps returned by `script`. Connections stay open unless
    /// a step closes them.
    /// - Parameters:
    ///   - keepsLog: True to keep ``requests``. False for tests that measure memory.
    public init(keepsLog: Bool = true, _ script: @escaping @Sendable (Request) -> [Step]) {
        self.keepsLog = keepsLog
        self.script = script
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        port = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                precondition(bind(listener, generic, size) == 0 && listen(listener, 1024) == 0, "errno \(errno)")
                getsockname(listener, generic, &size)
            }
            return UInt16(bigEndian: pointer.pointee.sin_port)
        }
        _ = NamedThread(name: "origin") { self.acceptAll() }
    }

    /// Returns the steps of a complete response with a Content-Length.
    public static func answer(_ status: String = "200 OK", _ headers: [String] = [], _ body: String = "") -> [Step] {
        let lines = ["HTTP/1.1 \(status)"] + headers + ["Content-Length: \(body.utf8.count)", "", body]
        return [.text(lines.joined(separator: "\r\n"))]
    }

    /// The requests received so far.
    public var requests: [Request] { log.withLock { $0.requests } }
    /// The number of accepted connections.
    public var connections: Int { log.withLock { $0.connections } }
    /// The number of connections that clients closed while the origin was sending or waiting for the close.
    public var cuts: Int { log.withLock { $0.cuts } }

    /// Returns the URL of a path on this origin.
    public func url(_ path: String, host: String = "127.0.0.1") -> String { "http://\(host):\(port)\(path)" }

    /// Closes the listener and all connections, and waits until all scripts have ended.
    public func stop() async throws {
        log.withLock { log in
            log.isStopping = true
            for descriptor in log.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
        shutdown(listener, Int32(SHUT_RDWR))
        // After the close, another origin may reuse the descriptor's number. No thread may still be about to accept on
        // it.
        try await until("the origin's threads have ended") {
            self.log.withLock { $0.open.isEmpty && !$0.isAccepting }
        }
        close(listener)
    }

    // MARK: Threads

    private func acceptAll() {
        defer { log.withLock { $0.isAccepting = false } }
        while true {
            let descriptor = accept(listener, nil, nil)
            guard descriptor >= 0 else { return }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            let accepted = log.withLock { log in
                if log.isStopping { return false }
                log.connections += 1
                log.open.insert(descriptor)
                return true
            }
            if !accepted {
                close(descriptor)
                return
            }
            _ = NamedThread(name: "origin") { self.serve(descriptor) }
        }
    }

    private func serve(_ descriptor: Int32) {
        var unread: [UInt8] = []
        var resets = false
        while let request = next(descriptor, &unread) {
            if keepsLog { log.withLock { $0.requests.append(request) } }
            let steps = script(request)
            resets = steps.contains { if case .reset = $0 { true } else { false } }
            if !steps.allSatisfy({ perform($0, descriptor) }) { break }
        }
        log.withLock { log in
            _ = log.open.remove(descriptor)
            // A child process that is being started may have inherited the descriptor, so close() alone might not end
            // the connection.
            if !resets { shutdown(descriptor, Int32(SHUT_RDWR)) }
            close(descriptor)
        }
    }

    /// Reads the next request of the connection; nil at its end.
    private func next(_ descriptor: Int32, _ unread: inout [UInt8]) -> Request? {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        func readMore() -> Bool {
            let count = read(descriptor, &buffer, buffer.count)
            if count > 0 { unread += buffer.prefix(count) }
            return count > 0
        }
        var end: Int?
        while end == nil {
            end = unread.indices.first { unread[$0...].starts(with: [13, 10, 13, 10]) }
            if end == nil && !readMore() { return nil }
        }
        let head = String(decoding: unread.prefix(end!), as: UTF8.self)
        let length =
            head.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
            .flatMap { Int($0.dropFirst(15).drop { $0 == " " }) } ?? 0
        unread.removeFirst(end! + 4)
        while unread.count < length { if !readMore() { return nil } }
        defer { unread.removeFirst(length) }
        return Request(head: head, body: Array(unread.prefix(length)))
    }

    /// Performs a step.
    /// - Returns: False if the connection must be closed.
    private func perform(_ step: Step, _ descriptor: Int32) -> Bool {
        switch step {
        case .text(let text): return send(Array(text.utf8), descriptor)
        case .bytes(let bytes): return send(bytes, descriptor)
        case .pause(let duration):
            usleep(UInt32(duration / .microseconds(1)))
            return true
        case .wait(let condition):
            let end = ContinuousClock.now + .patience
            while !condition() {
                guard .now < end else { return false }
                usleep(5000)
            }
            return true
        case .zeros(let count):
            let block = [UInt8](repeating: 0, count: 1 << 16)
            for sent in stride(from: 0, to: count, by: block.count) {
                if !send(Array(block.prefix(count - sent)), descriptor) { return false }
            }
            return true
        case .awaitEnd:
            var byte: UInt8 = 0
            if read(descriptor, &byte, 1) <= 0 { log.withLock { $0.cuts += 1 } }
            return false
        case .close: return false
        case .reset:
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
            return false
        }
    }

    private func send(_ bytes: [UInt8], _ descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else {
                log.withLock { $0.cuts += 1 }
                return false
            }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
