import Concurrency
import Formats
import HalcyonImaging
import HalcyonModel
import Telemetry

/// The identity of a result that jobs share. Jobs with equal keys wait for one rendering.
struct CoalescingKey: Hashable, Sendable {
    let key: ResultKey
    /// The cache policy. A job that reloads its source does not wait for one that uses the cache.
    let cache: CachePolicy
    /// True if the result is stored in the result cache, which all workers share.
    let isShared: Bool

    init(_ key: ResultKey, of job: JobContext) {
        self.key = key
        cache = job.job.cache
        isShared = job.sharesResults
    }
}

/// The value of a coalesced rendering.
enum CoalescedOutcome: Sendable {
    /// Another worker rendered the result and stored it in the result cache.
    case cached
    /// The result was put back into the result cache by this worker, from the result store.
    case restored
    /// This worker rendered the result.
    case rendered(RenderedResult)
    /// The result cannot be rendered, for any job.
    case failed(JobError)
    /// The operation failed because of another variant. The job asks again.
    case none
}

/// A rendered result with everything that any waiting job needs.
struct RenderedResult: Sendable {
    let key: ResultKey
    let image: RenderedImage
    /// The reservation of the worker's memory for its bytes.
    let memory: ResultMemory.Reservation
    let facts: ResultMetadata
    /// The response headers of the source and the time of its last byte, from which each job's TTL of the result is
    /// computed.
    let headers: HTTPFields
    let completedAt: Double
    /// The cache status of the source.
    let origin: CacheStatus
    var timings: Timings
    /// The fencing token of its lease, or 0 for none.
    let fence: Int
    /// The lower of the fencing tokens of the result and its source.
    let since: Int
    var storing = StoreOutcome.none
    /// The span of the job that rendered the result, if it is recorded.
    var maker: TraceContext?

    /// The outcome of storing a result.
    enum StoreOutcome: Sendable {
        /// The result was not stored, because it is not shared or the TTL policy of the rendering job does not store
        /// it.
        case none
        /// The result is in the result cache until this time, in seconds since 1970.
        case stored(until: Double)
        /// Redis did not store the result.
        case failed
    }

    /// True if the result is in the result cache.
    var isStored: Bool { if case .stored = storing { true } else { false } }
}

/// The memory of results that are being stored. It is counted like the memory of sources. While Redis is slow, fewer
/// sources are loaded (backpressure). Results that are being uploaded do not count: a slow target holds back no other
/// job, and its queue is bounded.
final class ResultMemory: Sendable {
    /// The reserved memory of one result, released with the last reference.
    final class Reservation: Sendable {
        private let memory: ResultMemory
        private let bytes: Int

        fileprivate init(_ memory: ResultMemory, _ bytes: Int) {
            self.memory = memory
            self.bytes = bytes
        }

        deinit { memory.add(-bytes) }
    }

    private let permits: PrioritySemaphore
    private let bytesPerPermit: Int
    private let bytes = Lock(0)

    /// - Parameters:
    ///   - permits: The permits of sources.
    ///   - bytesPerPermit: The number of bytes that one permit represents.
    init(_ permits: PrioritySemaphore, bytesPerPermit: Int) {
        self.permits = permits
        self.bytesPerPermit = bytesPerPermit
    }

    /// Reserves the bytes of a result, even beyond the limit, because they are already in memory.
    func hold(_ bytes: Int) -> Reservation {
        add(bytes)
        return Reservation(self, bytes)
    }

    private func add(_ change: Int) {
        let permits = bytes.withLock { bytes in
            let before = bytes / bytesPerPermit
            bytes += change
            return bytes / bytesPerPermit - before
        }
        if permits > 0 { self.permits.forceAcquire(permits) }
        if permits < 0 { self.permits.release(-permits) }
    }
}
