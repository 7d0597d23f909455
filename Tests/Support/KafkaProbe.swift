import Glibc
import Subprocess

/// A metadata request to a Kafka broker without a client library. An open port does not yet mean that the broker has
/// joined its cluster.
enum KafkaProbe {
    /// Returns the number of brokers in the metadata of the broker on `port`, or 0 if it does not respond.
    static func brokerCount(port: UInt16) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }
        var limit = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        guard LoopbackAddress.with(port: port, { connect(descriptor, $0, $1) == 0 }) else { return 0 }
        // Metadata request, version 1 (https://kafka.apache.org/protocol): size, api key 3, version 1, correlation 0,
        // no client id, an empty list of topics.
        let request: [UInt8] = [0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0]
        guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else { return 0 }
        // Response: size, correlation, number of brokers, …
        var response = [UInt8](repeating: 0, count: 12)
        guard recv(descriptor, &response, response.count, Int32(MSG_WAITALL)) == response.count else { return 0 }
        return response[8..<12].reduce(0) { $0 << 8 | Int32($1) }
    }
}
