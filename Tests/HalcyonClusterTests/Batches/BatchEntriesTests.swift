import HalcyonModel
import Kafka
import Testing

@testable import HalcyonCluster

@Suite struct BatchEntriesTests {
    private static let retention: Int64 = 1000

    /// Returns the entries after messages with these times, which are also their offsets.
    private func entries(_ messages: (time: Int64, message: BatchMessage)...) -> BatchEntries {
        var entries = BatchEntries(retention: Self.retention)
        for (time, message) in messages { add(message, at: time, to: &entries) }
        return entries
    }

    private func add(_ message: BatchMessage, at time: Int64, to entries: inout BatchEntries) {
        let record = ConsumedRecord(topic: "halcyon.batches", partition: 0, offset: time, timestamp: time, value: nil)
        entries.add(message, record, now: time)
    }

    @Test func combinesTheMessagesAboutABatch() throws {
        let entries = entries(
            (10, BatchMessage("b", .open(created: 5, tenant: "shop"))), (20, BatchMessage("b", .close(total: 3))),
            (30, BatchMessage("b", .close(total: 4))), (40, BatchMessage("b", .cancel)))
        let entry = try #require(entries.entry(of: "b", now: 50))
        #expect(entry.first == 10 && entry.updated == 40)
        #expect(entry.batch.created == 5 && entry.batch.tenant == "shop")
        #expect(entry.batch.total == 3 && entry.batch.cancelled == 40)
        #expect(entries.incomplete(now: 50).map(\.batch.id) == ["b"])
    }

    /// As after a loss of Redis, when a gateway does not know the batch.
    @Test func ownerIsThatOfTheFirstMessage() {
        func owner(after first: BatchMessage.Body) -> String? {
            let entries = entries(
                (10, BatchMessage("b", first)), (20, BatchMessage("b", .open(created: 20, owner: "later"))))
            return entries.entry(of: "b", now: 30)?.batch.owner
        }
        #expect(owner(after: .open(created: 10, owner: "first")) == "first")
        #expect(owner(after: .open(created: 10)) == nil)
        #expect(owner(after: .close(total: 1)) == nil)
    }

    @Test func anotherKeyChangesNeitherTenantNorWebhook() throws {
        let entries = entries(
            (10, BatchMessage("b", .open(created: 10, owner: "first"))),
            (20, BatchMessage("b", .open(created: 20, tenant: "t", owner: "later", webhook: .name("w")))))
        let batch = try #require(entries.entry(of: "b", now: 30)?.batch)
        #expect(batch.tenant == nil && batch.webhook == nil)
    }

    @Test func forgetsABatchAfterTheRetention() {
        let entries = entries((10, BatchMessage("b", .open(created: 10))), (20, BatchMessage("b", .cancel)))
        #expect(entries.entry(of: "b", now: 1020)?.batch.cancelled == 20)
        #expect(entries.entry(of: "b", now: 1021) == nil)
        #expect(entries.incomplete(now: 1021).isEmpty)
    }

    /// Neither the cancellation nor the completion of the first batch applies to the second one.
    @Test func anIDIsThatOfANewBatchAfterTheRetention() throws {
        let entries = entries(
            (10, BatchMessage("b", .cancel)), (20, BatchMessage("b", .close(total: 0))),
            (30, BatchMessage("b", .completed(Batch.Counts()))), (1031, BatchMessage("b", .close(total: 7))))
        let entry = try #require(entries.entry(of: "b", now: 1031))
        #expect(entry.first == 1031 && entry.batch.total == 7)
        #expect(entry.batch.cancelled == nil && entry.batch.completed == nil)
    }

    @Test func numberOfEntriesIsBounded() {
        var entries = BatchEntries(retention: Self.retention)
        for number in 0..<20_000 { add(BatchMessage("\(number)", .cancel), at: Int64(number), to: &entries) }
        #expect(entries.count <= 2 * Int(Self.retention + 1))
        #expect(entries.entry(of: "19000", now: 20_000) != nil)
    }
}
