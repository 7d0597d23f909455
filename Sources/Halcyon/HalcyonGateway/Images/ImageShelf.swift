import HTTPServer
import HalcyonCluster
import HalcyonModel
import Threads

/// Which images a gateway keeps for a moment.
public struct ShelfOptions: Hashable, Sendable {
    /// For how long, from when it was read. For so long readers may be given what has been replaced meanwhile, or purged, where that is not
    /// heard of before. 0 keeps none.
    public var time: Duration = .seconds(1)
    /// Bytes of all of them together.
    public var bytes = 64 << 20

    /// The defaults.
    public init() {}
}

/// Images that were read a moment ago: what many ask for at once costs Redis one look now and then, and is answered on the thread that
/// the request came on. HTTP lets caches keep an image for the rest of its life, so this is the least of them.
final class ImageShelf: Sendable {
    private struct State {
        /// By their keys. Reading one is no use of it, so they go in the order in which they were put there.
        var images: LRUCache<String, ShelvedImage>
        /// When a purge was last heard of: what was asked for before that may be what was purged.
        var purged: ContinuousClock.Instant?
    }

    /// No image may push out more than this part of the others.
    private static let largestPart = 8
    private let options: ShelfOptions
    private let state: Lock<State>

    init(_ options: ShelfOptions) {
        self.options = options
        state = Lock(State(images: LRUCache(capacity: options.bytes)))
    }

    /// Bytes that are kept now.
    var bytes: Int { state.withLock { $0.images.cost } }

    /// An image that is kept, and whose life is not over now.
    func image(_ key: String, at now: ContinuousClock.Instant) -> ShelvedImage? {
        guard let image = state.withLock({ $0.images.peek(key) }), image.read.duration(to: now) < options.time,
            image.remainingMilliseconds(at: now) > 0
        else { return nil }
        return image
    }

    /// Keeps the image of this key no longer.
    func remove(_ key: String) { state.withLock { _ = $0.images.remove(key) } }

    /// Keeps nothing of what has been purged by this moment. Which images are of a source or have a tag is not known here: all of them go then,
    /// and cost Redis a look each.
    func forget(_ target: Purged.Target?, at now: ContinuousClock.Instant) {
        state.withLock { state in
            state.purged = now
            if case .key(let key) = target { state.images.remove(key) } else { state.images.removeAll() }
        }
    }

    /// Keeps an image that was asked for at this moment. It takes the place of the same key's, and of the oldest ones when there are too many bytes.
    func put(_ stored: ResultTier.Stored, as key: String, at read: ContinuousClock.Instant) {
        let image = ShelvedImage(stored, read: read)
        let size = image.size
        guard options.time > .zero, size <= options.bytes / Self.largestPart else { return }
        state.withLock { [options] state in
            if let purged = state.purged, read <= purged { return }
            state.images.insert(image, for: key, cost: size)
            while let oldest = state.images.leastRecentlyUsed, oldest.value.read.duration(to: read) >= options.time {
                state.images.remove(oldest.key)
            }
        }
    }
}

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
