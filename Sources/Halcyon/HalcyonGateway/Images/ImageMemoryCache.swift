import Concurrency
import HTTPServer
import HalcyonCluster
import HalcyonModel

/// Settings of the in-memory cache of images.
public struct ImageMemoryCacheOptions: Hashable, Sendable {
    /// The TTL, counted from the read. Within it, clients may receive an image that has been replaced or purged, if no
    /// purge event was received. 0 disables the cache.
    public var time: Duration = .seconds(1)
    /// The capacity in bytes.
    public var bytes = 64 << 20

    /// Creates options with default values.
    public init() {}
}

/// A short-lived cache of images that were read from Redis. Popular images cause only occasional reads, and are
/// answered on the thread that received the request. HTTP caches may store an image until it expires, so this adds
/// little staleness.
final class ImageMemoryCache: Sendable {
    private struct State {
        /// The images by key. Reads do not update the order, so the oldest entries are evicted first.
        var images: LRUCache<String, CachedImage>
        /// The time of the last purge event. Images requested before it may have been purged.
        var purged: ContinuousClock.Instant?
    }

    /// The maximum share of the capacity that one image may use, as a divisor.
    private static let largestPart = 8
    private let options: ImageMemoryCacheOptions
    private let state: Lock<State>

    init(_ options: ImageMemoryCacheOptions) {
        self.options = options
        state = Lock(State(images: LRUCache(capacity: options.bytes)))
    }

    /// The current size in bytes.
    var bytes: Int { state.withLock { $0.images.cost } }

    /// Returns an image that has not expired.
    func image(_ key: String, at now: ContinuousClock.Instant) -> CachedImage? {
        guard let image = state.withLock({ $0.images.peek(key) }), image.read.duration(to: now) < options.time,
            image.remainingMilliseconds(at: now) > 0
        else { return nil }
        return image
    }

    /// Removes the image of a key.
    func remove(_ key: String) { state.withLock { _ = $0.images.remove(key) } }

    /// Removes what was purged by this time. The sources and tags of images are unknown here, so a purge by source or
    /// tag removes all of them. Each then costs one read from Redis.
    func invalidate(_ target: Purged.Target?, at now: ContinuousClock.Instant) {
        state.withLock { state in
            state.purged = now
            if case .key(let key) = target { state.images.remove(key) } else { state.images.removeAll() }
        }
    }

    /// Stores an image that was requested at this time. It replaces the image of the same key and evicts the oldest
    /// images if the capacity is exceeded.
    func insert(_ stored: ResultCache.Stored, as key: String, at read: ContinuousClock.Instant) {
        let image = CachedImage(stored, read: read)
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

/// An image that was read recently, with a shared response for requests of the whole image.
final class CachedImage: Sendable {
    /// The image and its metadata.
    let stored: ResultCache.Stored
    /// The time at which the image was requested.
    let read: ContinuousClock.Instant
    private let shared = Lock<(validity: ImageResponse.ImageCacheControl, response: HTTPServer.SharedResponse)?>(nil)

    /// The memory overhead of an entry, so that many small images are bounded, too.
    private static let overhead = 2048

    init(_ stored: ResultCache.Stored, read: ContinuousClock.Instant) { (self.stored, self.read) = (stored, read) }

    /// The size of the image and of its shared response, which contains a copy of the bytes and up to three of the tags.
    var size: Int {
        let count = stored.body?.count ?? 0
        let tags = stored.tags?.reduce(0) { $0 + $1.utf8.count } ?? 0
        return count + (count <= HTTPServer.SharedResponse.mostBytes ? count : 0) + 4 * tags + Self.overhead
    }

    /// Returns the remaining lifetime of the result.
    func remainingMilliseconds(at now: ContinuousClock.Instant) -> Int64 {
        // Rounded up. The quotient of two durations would not be exact.
        let (seconds, attoseconds) = read.duration(to: now).components
        return stored.remainingMilliseconds - seconds * 1000
            - (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    }

    /// Returns the shared response with this cache lifetime. A new one is created when the lifetime changes, which is
    /// once a second.
    /// - Parameter make: creates the response.
    /// - Returns: nil if the image is too large to be shared.
    func answer(
        _ validity: ImageResponse.ImageCacheControl, _ make: () -> HTTPServer.Response
    ) -> HTTPServer.SharedResponse? {
        if let made = shared.withLock({ $0 }), made.validity == validity { return made.response }
        guard (stored.body?.count ?? 0) <= HTTPServer.SharedResponse.mostBytes,
            let response = HTTPServer.SharedResponse(make())
        else { return nil }
        shared.withLock { $0 = (validity, response) }
        return response
    }
}
