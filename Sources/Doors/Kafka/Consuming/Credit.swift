/// How much of a partition may be delivered: so many records, as long as there are bytes left. The last one may have more than that.
public struct Credit: Hashable, Sendable {
    /// How many.
    public var records: Int
    /// What they may weigh together, as ``ConsumedRecord/bytes`` says.
    public var bytes: Int

    /// So much.
    public init(records: Int, bytes: Int) {
        self.records = records
        self.bytes = bytes
    }

    /// Nothing.
    public static let none = Credit(records: 0, bytes: 0)

    /// Both together.
    public static func + (one: Credit, other: Credit) -> Credit {
        Credit(records: one.records + other.records, bytes: one.bytes + other.bytes)
    }

    /// Adds to it.
    public static func += (credit: inout Credit, more: Credit) { credit = credit + more }

    /// Whether another record may be delivered.
    var isGood: Bool { records > 0 && bytes > 0 }

    /// A record was delivered on it.
    mutating func spend(_ record: ConsumedRecord) {
        records -= 1
        bytes -= record.bytes
    }
}
