import Kafka
import Testing

@testable import HalcyonCluster

@Suite struct OffsetLedgerTests {
    let partition = TopicPartition("jobs", 0)

    /// A ledger with one partition and these offsets taken.
    func ledger(window: Int = 8, taking offsets: Range<Int64>) -> (OffsetLedger, [OffsetLedger.Entry]) {
        var ledger = OffsetLedger(window: window)
        ledger.assign(partition)
        let entries = offsets.compactMap { ledger.take($0, of: partition) }
        return (ledger, entries)
    }

    @Test func offersOnlyWhatIsDoneWithoutAHole() {
        var (ledger, entries) = ledger(taking: 0..<4)
        _ = ledger.end(entries[1])
        #expect(ledger.uncommitted().isEmpty)
        _ = ledger.end(entries[0])
        #expect(ledger.uncommitted() == [partition: GroupOffset(2)])
        ledger.committed([partition: GroupOffset(2)])
        #expect(ledger.uncommitted().isEmpty)
        _ = ledger.end(entries[2])
        _ = ledger.end(entries[3])
        #expect(ledger.uncommitted() == [partition: GroupOffset(4)])
    }

    @Test func givesCreditBackInParcelsAndAlwaysAtTheEnd() {
        var (ledger, entries) = ledger(window: 8, taking: 0..<5)
        let credit = entries.map { ledger.end($0) }
        // Two are a quarter of the window; the last comes because nothing is left to wait for.
        #expect(credit == [0, 2, 0, 2, 1])
    }

    @Test func whatWasTakenBeforeARebalanceCountsNoMore() {
        var (ledger, entries) = ledger(taking: 0..<2)
        ledger.revoke(partition)
        ledger.assign(partition)
        #expect(ledger.end(entries[0]) == 0)
        let begins = ledger.begin(entries[1])
        #expect(!begins)
        #expect(ledger.uncommitted().isEmpty)
        #expect(ledger.working(in: nil) == 0)
    }

    @Test func takesNothingOfPartitionsItHasNot() {
        var ledger = OffsetLedger(window: 8)
        let entry = ledger.take(0, of: partition)
        #expect(entry == nil)
    }

    @Test func aClosingPartitionBeginsOnlyWhatWouldLeaveAHole() {
        var (ledger, entries) = ledger(taking: 0..<5)
        let begunBefore = ledger.begin(entries[2])
        ledger.close([partition])
        let (early, late) = (ledger.begin(entries[1]), ledger.begin(entries[3]))
        #expect(begunBefore && early && !late)
        ledger.handBack(entries[3])
        ledger.handBack(entries[4])
        #expect(ledger.working(in: [partition]) == 3)
        for entry in entries.prefix(3) {
            let credit = ledger.end(entry)
            #expect(credit == 0, "a partition that is about to go is granted nothing")
        }
        #expect(ledger.working(in: [partition]) == 0)
        #expect(ledger.uncommitted() == [partition: GroupOffset(3)])
    }
}
