import Concurrency
import HalcyonCluster
import Kafka

/// Submits jobs at a steady rate, in turn to each partition of the normal lane. Each has a tiny image of its own.
final class JobStream: Sendable {
    /// A job as it was submitted.
    struct Submission: Sendable {
        let id: String
        let partition: Int32
        let time: ContinuousClock.Instant
    }

    /// Jobs a second.
    static let rate = 20.0

    /// A PNG of 16 by 16 pixels.
    private static let image =
        "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mM4kWJEEmIY1TCqYfhqAACoeF4QNBLLLwAAAABJRU5ErkJggg=="

    private let task: Task<[Submission], any Error>

    /// - Parameter first: the number of its first job.
    init(_ producer: Producer, first: Int) {
        task = Task {
            let topic = Topics().jobs(.normal)
            let start = ContinuousClock.now
            var submissions: [Submission] = []
            while !Task.isCancelled {
                let number = first + submissions.count
                let submission = Submission(
                    id: "\(number)", partition: Int32(number) % Cluster.partitions, time: .now)
                let source = #"{"base64":"\#(Self.image)","cacheKey":"\#(number)"}"#
                let job = #"{"id":"\#(submission.id)","source":\#(source),"width":8}"#
                try await producer.send(
                    ProducerRecord(topic: topic, partition: submission.partition, value: Array(job.utf8)))
                submissions.append(submission)
                try? await Task.sleep(until: start + .seconds(Double(submissions.count) / Self.rate))
            }
            return submissions
        }
    }

    /// Submits no more.
    /// - Returns: the jobs that were submitted.
    func stop() async throws -> [Submission] {
        task.cancel()
        return try await task.value
    }
}
