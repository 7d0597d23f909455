import Concurrency
import HalcyonModel
import HalcyonSources

/// A provider that serves the same photograph for each `slow:NAME` after a delay, and counts the fetches.
final class SlowProvider: CustomSourceProvider {
    let name = "slow"
    private let photograph: [UInt8]
    private let time: Duration
    private let free: Int
    private let gate: AsyncEvent?
    private let counts = Lock<[String: Int]>([:])

    /// - Parameters:
    ///   - free: The number of fetches that do not wait for the gate.
    ///   - gate: The event that all later fetches wait for in addition; nil for none.
    init(_ photograph: [UInt8], takes time: Duration, free: Int = 0, gate: AsyncEvent? = nil) {
        self.photograph = photograph
        self.time = time
        self.free = free
        self.gate = gate
    }

    func fetch(_ reference: String, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        let number = counts.withLock { counts in
            counts[reference, default: 0] += 1
            return counts.values.reduce(0, +)
        }
        try await Task.sleep(for: time)
        if number > free { await gate?.wait() }
        return .loaded(LoadedSource(body: photograph, lifetime: .seconds(600)))
    }

    /// The number of fetches that were started, by source.
    var fetches: [String: Int] { counts.withLock { $0 } }

    /// Returns a job with its own source.
    func job(_ number: Int) -> String {
        #"{"id":"\#(number)","source":"slow:\#(number)","width":64,"height":64}"#
    }
}
