import CivilTime
import HalcyonCluster
import Kafka
import Threads

/// Says on standard error why jobs of a batch have not ended yet: what workers write into the topics of retries tells how often each was tried, and what
/// happened last.
final class RetryNotices: Sendable {
    private let batch: Batch
    private let bar: ProgressBar
    /// When something may be said again.
    private let next = Lock(ContinuousClock.now)

    /// Of many jobs that are tried again not every one is told of.
    private static let pause = Duration.seconds(1)

    init(_ batch: Batch, over bar: ProgressBar) {
        self.batch = batch
        self.bar = bar
    }

    /// Goes on until the task is cancelled, or the topic cannot be read.
    func follow(_ reader: TopicReader) async {
        var records = reader.makeAsyncIterator()
        // Notices are an extra: the events say how jobs end.
        while let record = try? await records.next() {
            // Others may write into the topic too.
            guard let message = try? RetryMessage(record), let index = batch.index(at: message.provenance.coordinates),
                let last = message.history.attempts.last, isDue()
            else { continue }
            let wait = Double(max(0, message.due - Timestamp.now.milliseconds))
            bar.clear()
            Console.complain(
                "\(batch.jobs[index].job.source.text): \(counted(message.history.count, "attempt")) failed, the last as "
                    + "\(last.code.rawValue): \(last.message); tried again in \(spanText(milliseconds: wait))")
        }
    }

    private func isDue() -> Bool {
        next.withLock { next in
            guard .now >= next else { return false }
            next = .now + Self.pause
            return true
        }
    }
}
