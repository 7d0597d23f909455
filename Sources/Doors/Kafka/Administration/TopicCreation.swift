/// A topic to be made.
public struct NewTopic: Hashable, Sendable {
    /// Its name.
    public var name: String
    /// How many partitions; nil for the broker's default.
    public var partitions: Int?
    /// How many brokers hold each; nil for the broker's default.
    public var replication: Int?
    /// Topic settings (https://kafka.apache.org/documentation/#topicconfigs).
    public var configuration: [String: String]

    /// A topic; what is left out is as the broker likes it.
    public init(_ name: String, partitions: Int? = nil, replication: Int? = nil, configuration: [String: String] = [:])
    {
        self.name = name
        self.partitions = partitions
        self.replication = replication
        self.configuration = configuration
    }
}

/// What became of a topic that was to be made.
public enum TopicCreation: Hashable, Sendable {
    /// It is there now.
    case created
    /// It was there before, and is as it was.
    case existed
    /// The broker refused it.
    case failed(KafkaError)
}
