import Glibc
import Subprocess

/// One request and its answer, over a connection of their own to a server of this machine: for proxies that tests make up.
public enum Exchange {
    /// Sends a text and gives back all that comes until the server ends the connection, which it must do by itself. It blocks.
    /// - Throws: ``NotInTime`` when nobody listens there.
    public static func bytes(_ request: String, port: UInt16) throws -> [UInt8] {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        guard LoopbackAddress.with(port: port, { connect(descriptor, $0, $1) == 0 }) else {
            throw NotInTime(description: "nobody listens on \(port)")
        }
        var rest = Array(request.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { break }
            rest = rest.dropFirst(count)
        }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return answer }
            answer += buffer.prefix(count)
        }
    }
}
