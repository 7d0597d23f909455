import Kafka

/// The headers in which it is noted what became of a message that Halcyon moves to another topic. Their names are Halcyon's own: what a
/// producer puts there is lost on the way.
enum MovedHeader: String, CaseIterable {
    // Where the message stood first.
    case topic, partition, offset, submitted
    // How it went since.
    case attempts, began, history
    // Of one that is to be tried again.
    case due, started
    // Of one that was put aside.
    case code, message, reason, cut

    /// As it stands in the message.
    var name: String { "halcyon-\(rawValue)" }

    /// One with a text.
    func with(_ text: some CustomStringConvertible) -> RecordHeader { RecordHeader(name, text.description) }
}

extension [RecordHeader] {
    /// All that were there before the message was moved.
    var unmoved: [RecordHeader] {
        filter { header in
            !header.name.hasPrefix("halcyon-") || !MovedHeader.allCases.contains { $0.name == header.name }
        }
    }

    /// The bytes of the last of a name.
    func bytes(_ name: String) -> [UInt8]? { last { $0.name == name }?.value }

    /// The text of the last of a name.
    func text(_ name: String) -> String? { bytes(name).map { String(decoding: $0, as: UTF8.self) } }

    /// A whole number within `range`.
    func number(_ header: MovedHeader, in range: ClosedRange<Int64> = 0...(1 << 53)) -> Int64? {
        text(header.name).flatMap { Int64($0) }.flatMap { range.contains($0) ? $0 : nil }
    }
}
