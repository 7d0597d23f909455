import Concurrency
import HalcyonModel
import HalcyonSources

/// A provider whose sources, `slow:NAME`, are all the same photograph and take their time. It keeps count of them.
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

    /// How often each source's load began.
    var loads: [String: Int] { counts.withLock { $0 } }

    /// A job for a source of its own.
    func job(_ number: Int) -> String {
        #"{"id":"\#(number)","source":"slow:\#(number)","width":64,"height":64}"#
    }
}
