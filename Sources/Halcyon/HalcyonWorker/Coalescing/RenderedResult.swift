import Formats
import HalcyonImaging
import HalcyonModel
import Telemetry
import Threads

/// Identifies a result that jobs share: jobs with equal keys wait for one rendering.
struct CoalescingKey: Hashable, Sendable {
    let key: ResultKey
    /// A job that wants its source reloaded does not wait for one that uses the cache.
    let cache: CacheUse
    /// Whether the result goes into the result cache, and so to jobs of other workers.
    let isShared: Bool

    init(_ key: ResultKey, of job: JobContext) {
        self.key = key
        cache = job.job.cache
        isShared = job.sharesResults
    }
}

/// The value of a coalesced rendering.
enum CoalescedOutcome: Sendable {
    /// Another worker rendered it: it is in the result cache.
    case cached
    /// It was rendered here.
    case rendered(RenderedResult)
    /// It cannot be rendered, whoever asks.
    case failed(Failure)
    /// The operation failed over another variant: ask again.
    case none
}

/// A result as it was rendered, with all that any waiting job needs.
struct RenderedResult: Sendable {
    let key: ResultKey
    let image: RenderedImage
    /// The share of the worker's memory that its bytes take.
    let memory: ResultMemory.Share
    let facts: ResultFacts
    /// The header fields of the source, and when its last byte had come: from these each job's lifetime of the result
    /// follows.
    let headers: HTTPFields
    let completedAt: Double
    /// The cache status of the source.
    let origin: ResultOrigin
    var timings: Timings
    /// The fencing token of its lease; 0 for none.
    let fence: Int
    /// The lower of its own fencing token and its source's.
    let since: Int
    var storing = StoreOutcome.none
    /// The span of the job that had it rendered, if it is recorded.
    var maker: TraceContext?

    /// The outcome of storing a result.
    enum StoreOutcome: Sendable {
        /// It was not tried: the result is not shared, or the rule of the job that had it rendered does not store it.
        case none
        /// It is in the result cache until then, in seconds since 1970.
        case stored(until: Double)
        /// Redis did not take it.
        case failed
    }

    /// Whether it is in the result cache.
    var isStored: Bool { if case .stored = storing { true } else { false } }
}

/// The memory of results that are being stored or delivered. It counts as sources do: while Redis or a target is slow,
/// fewer sources are loaded.
final class ResultMemory: Sendable {
    /// Bytes of one result, held until nobody has it any more.
    final class Share: Sendable {
        private let memory: ResultMemory
        private let bytes: Int

        fileprivate init(_ memory: ResultMemory, _ bytes: Int) {
            self.memory = memory
            self.bytes = bytes
        }

        deinit { memory.add(-bytes) }
    }

    private let places: Slots
    private let bytesPerPlace: Int
    private let bytes = Lock(0)

    /// - Parameters:
    ///   - places: those of sources.
    ///   - bytesPerPlace: bytes that one place stands for.
    init(_ places: Slots, bytesPerPlace: Int) {
        self.places = places
        self.bytesPerPlace = bytesPerPlace
    }

    /// Counts the bytes of a result from now on, whether or not there is room for them: they are there.
    func hold(_ bytes: Int) -> Share {
        add(bytes)
        return Share(self, bytes)
    }

    private func add(_ change: Int) {
        let places = bytes.withLock { bytes in
            let before = bytes / bytesPerPlace
            bytes += change
            return bytes / bytesPerPlace - before
        }
        if places > 0 { self.places.take(places) }
        if places < 0 { self.places.release(-places) }
    }
}
