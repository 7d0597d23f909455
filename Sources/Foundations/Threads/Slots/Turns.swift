/// Whose turn it is among several queues, each of which has a share: weighted fair queueing by strides (Waldspurger and Weihl,
/// "Stride Scheduling", MIT 1995).
///
/// While all queues have somebody waiting, each is served in proportion to its share, so none starves; a queue that was empty
/// for a while has saved nothing up.
struct Turns {
    private let strides: [Double]
    private var passes: [Double]
    private var now = 0.0

    /// - Parameter shares: of each queue, above 0.
    init(shares: [Int]) {
        precondition(!shares.isEmpty && shares.allSatisfy { $0 > 0 }, "each queue needs a share")
        strides = shares.map { 1 / Double($0) }
        passes = shares.map { _ in 0 }
    }

    /// A queue that was empty has somebody waiting.
    mutating func enter(_ queue: Int) { passes[queue] = max(passes[queue], now) }

    /// The next of those queues in which somebody waits; of equals the first.
    mutating func next(where waits: (Int) -> Bool) -> Int? {
        guard let queue = passes.indices.filter(waits).min(by: { passes[$0] < passes[$1] }) else { return nil }
        now = passes[queue]
        passes[queue] += strides[queue]
        return queue
    }
}
