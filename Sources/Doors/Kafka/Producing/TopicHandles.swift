import CRdKafka
import Threads

/// librdkafka's topic handles by name, kept so that sending does not look them up under librdkafka's lock each time.
final class TopicHandles: Sendable {
    private let client: Client
    private let known = Lock<[String: OpaquePointer]>([:])

    init(_ client: Client) { self.client = client }

    /// The handle; nil when the name is refused (`rd_kafka_last_error` says why).
    func handle(of topic: String) -> OpaquePointer? {
        let found = known.withLock { known -> SendablePointer? in
            if let handle = known[topic] { return SendablePointer(handle) }
            guard let handle = rd_kafka_topic_new(client.pointer, topic, nil) else { return nil }
            known[topic] = handle
            return SendablePointer(handle)
        }
        return found?.value
    }

    /// Gives all back; nobody sends any more.
    func destroy() {
        known.withLock { known in
            for handle in known.values { rd_kafka_topic_destroy(handle) }
            known = [:]
        }
    }
}

extension Optional<[UInt8]> {
    /// The bytes as C wants them: nil for nil, and a pointer that is not null for an empty array, for null means "no
    /// value".
    func withBytes<Result>(_ body: ((pointer: UnsafeMutableRawPointer, count: Int)?) -> Result) -> Result {
        guard let bytes = self else { return body(nil) }
        if bytes.isEmpty {
            var byte: UInt8 = 0
            return withUnsafeMutableBytes(of: &byte) { body(($0.baseAddress!, 0)) }
        }
        return bytes.withUnsafeBytes { body((UnsafeMutableRawPointer(mutating: $0.baseAddress!), $0.count)) }
    }
}
