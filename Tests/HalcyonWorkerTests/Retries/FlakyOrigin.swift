import Concurrency
import TestSupport

/// An origin that answers 503 so often before it serves a photograph, each path for itself.
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
    ///   - failures: answers of each path that are 503.
    ///   - headers: of these.
    init(failing failures: Int, headers: [String] = []) throws {
        let photograph = try SampleImages.bytes()
        let counts = Counts()
        self.counts = counts
        origin = RawOrigin { request in
            counts.next(request.path) > failures
                ? RawOrigin.Step.response(photograph) : RawOrigin.answer("503 Service Unavailable", headers)
        }
    }

    /// How often the source of a job was asked for.
    func requests(of id: String) -> Int { counts.byPath.withLock { $0["/\(id)"] ?? 0 } }

    /// A job for a source of its own.
    func job(_ id: String, _ members: String = "") -> String {
        #"{"id":"\#(id)","source":"\#(origin.url("/\(id)"))","width":64,"height":64\#(members)}"#
    }

    func stop() async throws { try await origin.stop() }
}
