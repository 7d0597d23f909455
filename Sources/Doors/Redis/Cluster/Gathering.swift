/// Puts the replies to the pieces of a pipeline back in order.
final class Gathering {
    private let call: Call
    private var replies: [RedisValue?]
    private var left: Int
    /// Why a piece has no reply at all.
    private var failure: RedisError?
    private var hasReplies = false

    init(for call: Call, of count: Int, pieces: Int) {
        self.call = call
        replies = Array(repeating: nil, count: count)
        left = pieces
    }

    /// Whether nobody waits for the pipeline any more.
    var isAnswered: Bool { call.isAnswered }

    /// A piece has come to its end; the last one answers the call.
    func put(_ outcome: Call.Outcome, at range: Range<Int>) {
        switch outcome {
        case .success(.array(let several)) where several.count == range.count && range.count > 1:
            hasReplies = true
            for (index, reply) in zip(range, several) { replies[index] = reply }
        case .success(let reply):
            hasReplies = true
            replies[range.lowerBound] = reply
        case .failure(let error):
            for index in range { replies[index] = .error(error) }
            if case .server = error.code { hasReplies = true } else { failure = failure ?? error }
        }
        left -= 1
        guard left == 0 else { return }
        if let failure, !hasReplies {
            call.answer(.failure(failure))
        } else {
            call.answer(.success(.array(replies.map { $0 ?? .null })))
        }
    }
}
