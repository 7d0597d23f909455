import HalcyonCluster
import Kafka

/// Puts the jobs of a batch on their lanes.
struct Sending: Sendable {
    let batch: Batch
    let topics: Topics
    let producer: Producer

    /// Jobs on their way at once: enough for librdkafka to fill its requests.
    private static let window = 1000

    /// Sends all, and waits until the brokers have them. One that cannot be sent ends as `notSent`. When the task is
    /// cancelled the producer is closed, and what no broker has yet is given up.
    /// - Returns: where each came to lie, in the order of the jobs; nil for one that was not sent.
    @discardableResult
    func run() async -> [Delivery?] {
        await withTaskCancellationHandler {
            await sendAll()
        } onCancel: {
            Task { await producer.close(flushingFor: .zero) }
        }
    }

    private func sendAll() async -> [Delivery?] {
        await withTaskGroup(of: (Int, Delivery?).self) { group in
            var deliveries = [Delivery?](repeating: nil, count: batch.jobs.count)
            for index in batch.jobs.indices {
                if index >= Self.window, let (index, delivery) = await group.next() { deliveries[index] = delivery }
                if Task.isCancelled { break }
                group.addTask { (index, await send(index)) }
            }
            for await (index, delivery) in group { deliveries[index] = delivery }
            return deliveries
        }
    }

    private func send(_ index: Int) async -> Delivery? {
        do throws(KafkaError) {
            let record = topics.record(of: batch.jobs[index])
            let delivery = try await producer.send(record)
            batch.sent(index, to: "\(record.topic)-\(delivery.partition)-\(delivery.offset)")
            return delivery
        } catch {
            batch.end(index, .notSent(error))
            return nil
        }
    }
}
