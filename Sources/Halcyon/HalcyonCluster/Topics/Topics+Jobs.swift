import HalcyonWire
import Kafka

extension Topics {
    /// The record of a job, for its lane. It is keyed by its source, so that jobs of one source come to one worker where that is possible.
    public func record(of prepared: PreparedJob, headers: [RecordHeader] = []) -> ProducerRecord {
        ProducerRecord(
            topic: jobs(prepared.lane), key: Array(prepared.job.source.text.utf8), value: prepared.message,
            headers: headers)
    }
}
