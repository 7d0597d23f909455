import Concurrency
import TestSupport

/// An origin that fails a number of requests for each path with 503 before it serves a photograph.
struct FlakyOrigin: Sendable {
    private let origin: RawOrigin
    private let counts: Counts

    private final class Counts: Sendable {
        let byPath = Lock<[String: Int]>([:])

        func next(_ path: String) -> Int {
            byPath.withLock { counts in
                counts[path, default: 0] += 1
                return counts[path]!
            }
        }
    }

    /// - Parameters:
    ///   - failures: The number of 503 responses for each path.
    ///   - headers: The headers of these responses.
    init(failing failures: Int, headers: [String] = []) throws {
        let photograph = try SampleImages.bytes()
        let counts = Counts()
        self.counts = counts
        origin = RawOrigin { request in
            counts.next(request.path) > failures
                ? RawOrigin.Step.response(photograph) : RawOrigin.answer("503 Service Unavailable", headers)
        }
    }

    /// Returns the number of requests for the source of a job.
    func requests(of id: String) -> Int { counts.byPath.withLock { $0["/\(id)"] ?? 0 } }

    /// Returns a job with its own source.
    func job(_ id: String, _ members: String = "") -> String {
        #"{"id":"\#(id)","source":"\#(origin.url("/\(id)"))","width":64,"height":64\#(members)}"#
    }

    func stop() async throws { try await origin.stop() }
}
