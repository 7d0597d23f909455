import CRdKafka

/// The partitions that are a consumer's, each with a queue of its own and its credit. Used on the consumer's thread.
final class Assignment {
    private final class Partition {
        let queue: RecordQueue
        var credit = Credit.none
        var isRevoked = false
        init(_ queue: RecordQueue) { self.queue = queue }
    }

    private let client: Client
    private let wakeup: Wakeup
    private var partitions: [TopicPartition: Partition] = [:]

    /// How many records of one partition are delivered at once, so that the others get their turn.
    private static let batch = 256

    init(_ client: Client, _ wakeup: Wakeup) {
        self.client = client
        self.wakeup = wakeup
    }

    /// Takes partitions on, without credit. Gives back what librdkafka says against it.
    func add(_ added: [TopicPartition]) -> KafkaError? {
        // Split off before assigning, else what is fetched first goes to the common queue.
        for partition in added {
            let queue = rd_kafka_queue_get_partition(client.pointer, partition.topic, partition.partition)!
            rd_kafka_queue_forward(queue, nil)
            partitions[partition]?.queue.destroy()
            partitions[partition] = Partition(RecordQueue(queue, of: partition.topic, wakeup))
        }
        let list = PartitionList(added)
        if isCooperative {
            return rd_kafka_incremental_assign(client.pointer, list.pointer).map(KafkaError.init(consuming:))
        }
        return KafkaError(unlessNone: rd_kafka_assign(client.pointer, list.pointer))
    }

    /// From now on nothing more of them is delivered; they stay assigned, so that offsets can be committed.
    func stopDelivering(_ revoked: [TopicPartition]) {
        for partition in revoked { partitions[partition]?.isRevoked = true }
    }

    /// Gives partitions back to the group.
    func remove(_ removed: [TopicPartition]) -> KafkaError? {
        defer { for partition in removed { partitions.removeValue(forKey: partition)?.queue.destroy() } }
        let list = PartitionList(removed)
        if isCooperative {
            return rd_kafka_incremental_unassign(client.pointer, list.pointer).map(KafkaError.init(consuming:))
        }
        // The eager protocol takes everything away at once.
        return KafkaError(unlessNone: rd_kafka_assign(client.pointer, nil))
    }

    /// Adds credit; that of partitions that are not here is forgotten.
    func credit(_ grants: [TopicPartition: Credit]) {
        for (partition, credit) in grants { partitions[partition]?.credit += credit }
    }

    /// Pulls a batch from each partition that has credit. True when there may be more.
    func deliver(
        _ received: ([ConsumedRecord]) -> Void, ended: (TopicPartition, Int64) -> Void, failed: (KafkaError) -> Void
    ) -> Bool {
        var isMoreWaiting = false
        for (name, partition) in partitions where partition.credit.isGood && !partition.isRevoked {
            let pull = partition.queue.pull(Self.batch, on: &partition.credit, failed: failed)
            isMoreWaiting = isMoreWaiting || pull.records.count == Self.batch || pull.end != nil
            if !pull.records.isEmpty { received(pull.records) }
            if let end = pull.end { ended(name, end.offset) }
        }
        return isMoreWaiting
    }

    /// Gives all queues back, at the end.
    func destroy() {
        for partition in partitions.values { partition.queue.destroy() }
        partitions = [:]
    }

    /// Whether the group moves single partitions (KIP-429) instead of taking everything away first.
    private var isCooperative: Bool {
        rd_kafka_rebalance_protocol(client.pointer).map { String(cString: $0) } == "COOPERATIVE"
    }
}
