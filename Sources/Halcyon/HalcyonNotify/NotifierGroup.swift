/// A consumer group of notifiers.
public struct NotifierGroup: Hashable, Sendable {
    /// As Kafka knows it.
    public let name: String
    /// What it takes.
    public let topics: [String]
}

extension NotifierOptions {
    /// Those who tell Redis' subscribers.
    var pubSubGroup: NotifierGroup { NotifierGroup(name: "\(group)-notifications", topics: [topics.events]) }

    /// Those who tell webhooks.
    var webhookGroup: NotifierGroup {
        NotifierGroup(name: "\(group)-webhooks", topics: [topics.events] + topics.webhookRetries)
    }

    /// The groups that have anything to do.
    public var groups: [NotifierGroup] {
        (pubSub == nil ? [] : [pubSubGroup]) + (webhooks.targets.isEmpty ? [] : [webhookGroup])
    }
}
