import HalcyonGateway
import Settings

/// What the gateway is told of its event streams.
extension Keys {
    private static let events = EventOptions()

    static let gatewayStreams = SettingKey(
        "gateway.streams", .integer(in: 1...100_000), default: events.streams,
        help: "Event streams at once, of all callers.")
    static let gatewayEventBytes = SettingKey(
        "gateway.eventBytes", .byteSize(in: 65_536...(1 << 32)), default: events.ringBytes,
        help:
            "Memory for the newest events: who comes back within what they reach costs Kafka nothing, who falls behind them is dropped."
    )
    static let gatewayEventMemory = SettingKey(
        "gateway.eventMemory", .duration(in: .zero ... .seconds(86_400)), default: events.memory,
        help: "How far back events are read at the start, for clients of a gateway that has gone.")
    static let gatewayReplays = SettingKey(
        "gateway.replays", .integer(in: 1...1000), default: events.replays,
        help: "Event streams at once that are read from Kafka what they have missed; others wait for their turn.")
    static let gatewayKeepAlive = SettingKey(
        "gateway.keepAlive", .duration(in: .milliseconds(100) ... .seconds(3600)), default: events.keepAlive,
        help: "After how long without an event a stream is sent a sign of life.")
    static let gatewayPatience = SettingKey(
        "gateway.patience", .duration(in: .milliseconds(100) ... .seconds(3600)), default: events.patience,
        help: "How long the client of an event stream may leave unread what was sent to it.")
    static let gatewayRetry = SettingKey(
        "gateway.retry", .duration(in: .zero ... .seconds(3600)), default: events.retry,
        help: "After how long clients come back whose event stream has ended.")

    static let gatewayPartitionInterval = SettingKey(
        "gateway.partitionInterval", .duration(in: .milliseconds(100) ... .seconds(3600)),
        default: events.partitionInterval,
        help: "How often is looked whether the topic of events has more partitions.")

    /// All of them, in the order in which they are listed.
    static let streaming: [any AnySettingKey] = [
        gatewayStreams, gatewayEventBytes, gatewayEventMemory, gatewayReplays, gatewayKeepAlive, gatewayPatience,
        gatewayRetry, gatewayPartitionInterval,
    ]
}

extension Configuration {
    /// What a gateway is told of its event streams.
    var events: EventOptions {
        var options = EventOptions()
        options.streams = settings[Keys.gatewayStreams]
        options.ringBytes = settings[Keys.gatewayEventBytes]
        options.memory = settings[Keys.gatewayEventMemory]
        options.replays = settings[Keys.gatewayReplays]
        options.keepAlive = settings[Keys.gatewayKeepAlive]
        options.patience = settings[Keys.gatewayPatience]
        options.retry = settings[Keys.gatewayRetry]
        options.partitionInterval = settings[Keys.gatewayPartitionInterval]
        return options
    }
}
