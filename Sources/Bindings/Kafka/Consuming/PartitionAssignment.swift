import CRdKafka

/// The partitions assigned to a consumer, each with a queue and its credit. Used only on the consumer's thread.
final class PartitionAssignment {
    private final class Partition {
        let queue: RecordQueue
        var credit = Credit.none
        var isRevoked = false
        init(_ queue: RecordQueue) { self.queue = queue }
    }

    private let client: Client
    private let wakeup: EventFD
    private var partitions: [TopicPartition: Partition] = [:]

    /// The number of records delivered at once from one partition, so that the others are served too.
    private static let batch = 256

    init(_ client: Client, _ wakeup: EventFD) {
        self.client = client
        self.wakeup = wakeup
    }

    /// Assigns partitions, without credit. Returns librdkafka's error, if any.
    func add(_ added: [TopicPartition]) -> KafkaError? {
        // Separate the queues before assigning. Otherwise the first fetched records go to the common queue.
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

    /// Stops delivering records of these partitions. They stay assigned so that offsets can be committed.
    func stopDelivering(_ revoked: [TopicPartition]) {
        for partition in revoked { partitions[partition]?.isRevoked = true }
    }

    /// Unassigns partitions.
    func remove(_ removed: [TopicPartition]) -> KafkaError? {
        defer { for partition in removed { partitions.removeValue(forKey: partition)?.queue.destroy() } }
        let list = PartitionList(removed)
        if isCooperative {
            return rd_kafka_incremental_unassign(client.pointer, list.pointer).map(KafkaError.init(consuming:))
        }
        // The eager protocol unassigns everything at once.
        return KafkaError(unlessNone: rd_kafka_assign(client.pointer, nil))
    }

    /// Adds credit. Credit for partitions that are not assigned is ignored.
    func credit(_ grants: [TopicPartition: Credit]) {
        for (partition, credit) in grants { partitions[partition]?.credit += credit }
    }

    /// Delivers a batch from each partition that has credit. True if there may be more.
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

    /// Destroys all queues, at the end.
    func destroy() {
        for partition in partitions.values { partition.queue.destroy() }
        partitions = [:]
    }

    /// True if the group reassigns single partitions (KIP-429) instead of revoking everything first.
    private var isCooperative: Bool {
        rd_kafka_rebalance_protocol(client.pointer).map { String(cString: $0) } == "COOPERATIVE"
    }
}
