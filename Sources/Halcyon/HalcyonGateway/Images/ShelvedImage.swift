import HTTPServer
import HalcyonCluster
import Threads

/// An image that was read a moment ago, and the answer to all who ask for the whole of it.
final class ShelvedImage: Sendable {
    /// As it was read.
    let stored: ResultTier.Stored
    /// When it was asked for.
    let read: ContinuousClock.Instant
    private let shared = Lock<(validity: ImageAnswer.Validity, response: HTTPServer.SharedResponse)?>(nil)

    /// What an image costs beside its bytes, so that many small ones are bounded as well.
    private static let overhead = 2048

    init(_ stored: ResultTier.Stored, read: ContinuousClock.Instant) { (self.stored, self.read) = (stored, read) }

    /// Bytes of it and of its answer, which has them once more.
    var size: Int {
        let count = stored.body?.count ?? 0
        return count + (count <= HTTPServer.SharedResponse.mostBytes ? count : 0) + Self.overhead
    }

    /// What is left of its life.
    func remainingMilliseconds(at now: ContinuousClock.Instant) -> Int64 {
        stored.remainingMilliseconds - Int64((read.duration(to: now) / .milliseconds(1)).rounded(.up))
    }

    /// The answer that may be kept for so long. It is made anew when that changes: once a second.
    /// - Parameter make: makes it.
    /// - Returns: nil for an image that is too large to be shared.
    func answer(
        _ validity: ImageAnswer.Validity, _ make: () -> HTTPServer.Response
    ) -> HTTPServer.SharedResponse? {
        if let made = shared.withLock({ $0 }), made.validity == validity { return made.response }
        guard (stored.body?.count ?? 0) <= HTTPServer.SharedResponse.mostBytes,
            let response = HTTPServer.SharedResponse(make())
        else { return nil }
        shared.withLock { $0 = (validity, response) }
        return response
    }
}
