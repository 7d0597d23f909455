/// What a ``Consumer`` calls. The calls come one after another on the consumer's own thread, except
/// ``revoked(_:lost:from:)``, which runs as a task; none but that may block or wait.
public protocol ConsumerHandler: AnyObject, Sendable {
    /// These partitions are this consumer's from now on. Nothing of them is delivered before credit is granted with
    /// ``Consumer/grant(_:to:)``, here or later.
    func assigned(_ partitions: [TopicPartition], to consumer: Consumer)

    /// Records came, all of one partition, in the order of their offsets, no more than there was credit for.
    func received(_ records: [ConsumedRecord], from consumer: Consumer)

    /// All records of a partition have come that there are so far: what stands below `offset` and did not come is no record (markers of
    /// transactions, what was aborted or compacted). Told again whenever the end is come to anew, while the partition has credit.
    func reachedEnd(of partition: TopicPartition, at offset: Int64, in consumer: Consumer)

    /// These partitions are taken away; no more records of them come. Until this returns the group waits, within the
    /// session and poll time-outs, so finish work and commit here; commits still go through.
    /// - Parameter lost: they belong to someone else already and commits will be refused.
    func revoked(_ partitions: [TopicPartition], lost: Bool, from consumer: Consumer) async

    /// Something failed that librdkafka does not mend by itself: a topic that is not there, an access refused, or, when
    /// ``KafkaError/isFatal``, the end of this consumer.
    func failed(_ error: KafkaError, in consumer: Consumer)
}
