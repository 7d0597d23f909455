import Glibc

/// Asks a Kafka broker one question without a client library: an open port is not yet a broker that has joined its
/// cluster.
enum KafkaProbe {
    /// How many brokers the one on `port` knows of; 0 when it does not answer.
    static func brokerCount(port: UInt16) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }
        var limit = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        address.sin_port = port.bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard connected else { return 0 }
        // Metadata request, version 1 (https://kafka.apache.org/protocol): size, api key 3, version 1, correlation 0,
        // no client id, an empty list of topics.
        let request: [UInt8] = [0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0]
        guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else { return 0 }
        // Answer: size, correlation, number of brokers, …
        var answer = [UInt8](repeating: 0, count: 12)
        guard recv(descriptor, &answer, answer.count, Int32(MSG_WAITALL)) == answer.count else { return 0 }
        return answer[8..<12].reduce(0) { $0 << 8 | Int32($1) }
    }
}
