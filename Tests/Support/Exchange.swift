import Glibc
import Subprocess

/// A single request and its response over a new connection to a server on this machine, for proxies written in tests.
public enum Exchange {
    /// Sends a request and returns all bytes until the server closes the connection, which it must do on its own.
    /// Blocks the thread.
    /// - Throws: ``ConditionTimeout`` if no server listens on the port.
    public static func bytes(_ request: String, port: UInt16) throws -> [UInt8] {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        guard LoopbackAddress.with(port: port, { connect(descriptor, $0, $1) == 0 }) else {
            throw ConditionTimeout(description: "no server listens on port \(port)")
        }
        var rest = Array(request.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { break }
            rest = rest.dropFirst(count)
        }
        var response: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return response }
            response += buffer.prefix(count)
        }
    }
}
