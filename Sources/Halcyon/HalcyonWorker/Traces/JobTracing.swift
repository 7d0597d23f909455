import HalcyonCluster
import Kafka
import Telemetry

/// Has what the worker does recorded as traces, where that is wanted.
struct JobTracing: Sendable {
    let tracer: Tracer
    /// The worker's group.
    let group: String

    /// A job was taken.
    /// - Returns: nil when nothing of it is recorded.
    func begin(_ record: ConsumedRecord) -> JobTrace? {
        let parent = record.traceparent.flatMap { TraceContext(traceparent: $0) }
        guard let context = tracer.begin(under: parent) else { return nil }
        return JobTrace(context, under: parent, of: record, group: group, tracer)
    }
}
