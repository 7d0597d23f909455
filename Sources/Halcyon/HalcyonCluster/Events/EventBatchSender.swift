import CivilTime
import Kafka
import Redis
import Telemetry
import Threads

/// Tells Redis of events that were taken, one after the other, until it has taken them.
struct EventBatchSender: Sendable {
    let redis: RedisClient
    /// Seconds.
    let maximumAge: Double
    let commands: EventRelay.Commands
    let log: Log
    let metrics: RelayMetrics

    /// Commands that leave together, and the bytes they carry.
    private static let most = (records: 256, bytes: 1 << 20)
    /// Between attempts while Redis does not take them.
    private static let rest = Duration.milliseconds(500)

    func send(_ taken: [TakenRecord]) async {
        var next = taken[...]
        while !next.isEmpty {
            var bytes = 0
            let count = next.prefix(Self.most.records).prefix { taken in
                defer { bytes += taken.record.value?.count ?? 0 }
                return bytes < Self.most.bytes
            }.count
            await sendAll(Array(next.prefix(count)))
            next = next.dropFirst(count)
        }
    }

    /// Until all of them are told or handed back. Meanwhile no other event is, so that each partition keeps its order.
    private func sendAll(_ taken: [TakenRecord]) async {
        var left = taken
        var isAway = false
        while true {
            left = left.filter(begin)
            if left.isEmpty { break }
            let (count, error) = await tell(left.map(\.record))
            for taken in left.prefix(count) { taken.end() }
            metrics.published.add(count)
            left.removeFirst(count)
            guard let error else { continue }
            if !isAway { log.warning("Redis takes no events; they wait for it", ["error": "\(error)"]) }
            isAway = true
            left = left.filter { taken in
                if !taken.rest() {
                    taken.handBack()
                    return false
                }
                return true
            }
            await Task.sleepUnlessCancelled(for: Self.rest)
        }
        if isAway { log.notice("Redis takes events again, or another worker has them") }
    }

    /// Whether an event is to be told here and now.
    private func begin(_ taken: TakenRecord) -> Bool {
        guard taken.begin() else {
            taken.handBack()
            return false
        }
        let age = Double(Timestamp.now.milliseconds - taken.record.timestamp) / 1000
        if taken.record.value == nil || (taken.record.timestamp >= 0 && age > maximumAge) {
            taken.end()
            metrics.stale.add()
            return false
        }
        return true
    }

    /// - Returns: how many were taken before one that was not, and why that was not.
    private func tell(_ records: [ConsumedRecord]) async -> (Int, RedisError?) {
        let commands = records.map(commands)
        do throws(RedisError) {
            var replies = try await redis.pipeline(commands.flatMap(\.self))[...]
            for (index, group) in commands.enumerated() {
                for case .error(let error) in replies.prefix(group.count) { return (index, error) }
                replies = replies.dropFirst(group.count)
            }
            return (records.count, nil)
        } catch {
            return (0, error)
        }
    }
}
