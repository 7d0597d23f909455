import HalcyonModel
import HalcyonWire
import Kafka

extension AttemptHistory {
    /// Of a message that was moved; nil where its headers do not say.
    init?(_ headers: [RecordHeader]) {
        // Headers that are not Halcyon's own say nothing.
        guard let count = headers.number(.attempts, in: 0...1_000_000), let began = headers.number(.began),
            let json = headers.bytes(MovedHeader.history.name), let attempts = try? [Attempt](json: json)
        else { return nil }
        self.init(began: began, count: Int(count), attempts: attempts)
    }

    var headers: [RecordHeader] {
        [
            MovedHeader.attempts.with(count), MovedHeader.began.with(began),
            RecordHeader(MovedHeader.history.name, attempts.json),
        ]
    }
}
