import Kafka

/// For how long somebody waits for a job's end, in milliseconds from when it was written: a header of its record.
///
/// It is no deadline: what is under way is finished for whoever asks next. But the job is not tried again for nobody.
public struct Patience: Hashable, Sendable {
    /// The header's name.
    static let name = "halcyon-wait"
    /// That long at most: a day.
    static let longest: Int64 = 86_400_000

    /// Milliseconds.
    public let milliseconds: Int64

    /// Of so long.
    public init(_ duration: Duration) {
        milliseconds = min(max(0, Int64(duration / .milliseconds(1))), Self.longest)
    }

    /// A record's; nil where nobody is known to wait.
    public init?(of record: ConsumedRecord) {
        guard let text = record.headers.text(Self.name), let number = Int64(text), (0...Self.longest).contains(number)
        else { return nil }
        milliseconds = number
    }

    /// As the record has it.
    public var header: RecordHeader { RecordHeader(Self.name, Array("\(milliseconds)".utf8)) }
}
