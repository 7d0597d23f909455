import Kafka

extension MockCluster {
    /// Properties of all consumers of a mock cluster. It answers a fetch that finds no records when this time is over,
    /// not when records arrive, so the default of half a second would delay each step of a test. At 10 ms, idle
    /// consumers took a quarter of the processor time of all tests, and at 40 ms a tenth.
    public static let fetchProperties = ["fetch.wait.max.ms": "80"]

    /// The same properties as environment variables of `halcyon worker`.
    public static let fetchEnvironment = Dictionary(
        uniqueKeysWithValues: fetchProperties.map { ("HALCYON_KAFKA_PROPERTY_\($0)", $1) })

    /// Properties of consumers of this cluster, with its address.
    public var consumerProperties: [String: String] { ["bootstrap.servers": bootstrapServers] + Self.fetchProperties }
}

extension [String: String] {
    /// Properties of two sources that have no name in common.
    public static func + (first: Self, second: Self) -> Self {
        first.merging(second) { _, _ in preconditionFailure("a property is set twice") }
    }
}
