import CivilTime
import HalcyonModel
import Kafka
import Redis

/// A purge from beginning to end: results go from Redis, workers are told, and so is everybody who follows events.
public struct Purging: Sendable {
    private let redis: RedisClient
    private let producer: Producer
    private let topics: Topics

    /// Redis and the producer stay their makers', who close them.
    public init(_ redis: RedisClient, _ producer: Producer, topics: Topics) {
        self.redis = redis
        self.producer = producer
        self.topics = topics
    }

    /// Forgets what the purge says. It needs no worker.
    /// - Returns: how much was there.
    /// - Throws: `RedisError`: part of it may be gone, and nobody was told; ``PurgeNotTold``. The same purge again does the rest.
    public func run(_ purge: Purge) async throws -> Purged {
        let purged = Purged(purge, count: try await Purger(redis).run(purge))
        do throws(KafkaError) {
            try await ControlPublisher(producer, topics: topics).publish(.purge(purge))
            _ = try await producer.send(EventPublisher.record(of: Self.event(purged), topics))
        } catch {
            throw PurgeNotTold(purged: purged, reason: error)
        }
        return purged
    }

    private static func event(_ purged: Purged) -> Event {
        var subject: String?
        if case .source(let source) = purged.target { subject = source }
        return Event(
            id: "purge-\(String(UInt64.random(in: .min ... .max), radix: 16))", time: Timestamp.now.seconds,
            subject: subject, jobID: nil, body: .purged(purged))
    }
}

/// Results are forgotten, and workers and those who follow events do not know.
public struct PurgeNotTold: Error, CustomStringConvertible {
    /// What was forgotten.
    public let purged: Purged
    /// Why nobody was told.
    public let reason: KafkaError

    /// What would mend it.
    public var description: String {
        "it is forgotten in Redis, but workers and consumers were not told; purge again: \(reason)"
    }
}
