import Concurrency
import HalcyonModel
import HalcyonSources

/// A provider that serves the same photograph for each `slow:NAME` after a delay, and counts the fetches.
final class SlowProvider: CustomSourceProvider {
    let name = "slow"
    private let photograph: [UInt8]
    private let time: Duration
    private let counts = Lock<[String: Int]>([:])

    init(_ photograph: [UInt8], takes time: Duration) {
        self.photograph = photograph
        self.time = time
    }

    func fetch(_ reference: String, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        counts.withLock { $0[reference, default: 0] += 1 }
        try await Task.sleep(for: time)
        return .loaded(LoadedSource(body: photograph, lifetime: .seconds(600)))
    }

    /// The number of fetches that were started, by source.
    var fetches: [String: Int] { counts.withLock { $0 } }

    /// Returns a job with its own source.
    func job(_ number: Int) -> String {
        #"{"id":"\#(number)","source":"slow:\#(number)","width":64,"height":64}"#
    }
}
