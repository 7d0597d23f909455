import CRdKafka

/// librdkafka as a whole.
public enum KafkaLibrary {
    /// The version that runs, such as `2.0.2`.
    public static var version: String { String(cString: rd_kafka_version_str()) }
}
