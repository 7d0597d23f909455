import Concurrency
import Formats
import HalcyonModel
import Telemetry

/// The persistent store of results, below the result cache in Redis: objects in a folder or an S3 bucket.
///
/// A result outlives its eviction from Redis and the loss of Redis. It has the same absolute expiry in both, and a
/// purge reaches it by a tombstone (``Tombstones``): a purged result is a miss from then on, even if a worker that had
/// begun before writes its object later. The objects are deleted afterwards.
///
/// The storage never makes a job fail unless the job requires it. While it is unavailable, nothing is found.
public final class ResultStore: Sendable {
    let storage: any ObjectStorage
    let options: ResultStoreOptions
    let tombstones = Lock(Tombstones())
    /// Signaled when the tombstones have been read. Until then nothing is found, because it may have been purged.
    let loaded = AsyncEvent()
    /// Separate, because a full storage can still be read.
    let (reads, writes): (StorageGuard, StorageGuard)
    let metrics: ResultStoreMetrics
    let queue: WriteQueue
    private let writers = PrioritySemaphore(ResultStore.writers)
    /// The maximum number of writes at the same time. Each needs a connection to an object store.
    static let writers = 32
    private let opened = ContinuousClock.now
    let indexed = Lock(IndexedEntries())
    /// The reads in flight.
    private let searches = Lock<[ResultKey: Task<StoredResult?, Never>]>([:])
    private let sweeping = Lock<Task<Void, Never>?>(nil)
    private let standing: @Sendable (StoredResult) async -> ResultStanding
    /// The maximum number of newer results that replace one after its writing.
    private static let mostReplacements = 3
    private let log: Log

    init(
        _ storage: any ObjectStorage, _ options: ResultStoreOptions, log: Log, metrics: Metrics,
        standing: @escaping @Sendable (StoredResult) async -> ResultStanding = { _ in .current }
    ) {
        self.storage = storage
        self.options = options
        self.log = log
        self.metrics = ResultStoreMetrics(metrics)
        self.standing = standing
        queue = WriteQueue(limit: options.queueBytes, size: self.metrics.queued)
        reads = StorageGuard("read", log: log, metrics: metrics)
        writes = StorageGuard("write", log: log, metrics: metrics)
    }

    /// Opens a store. The call blocks while a folder is created.
    /// - Parameter standing: Returns what the result cache in Redis knows of a result. It is called after each write.
    /// - Throws: ``StorageError`` if the folder cannot be used.
    public static func open(
        _ options: ResultStoreOptions, log: Log, metrics: Metrics,
        standing: @escaping @Sendable (StoredResult) async -> ResultStanding = { _ in .current }
    ) throws(StorageError) -> ResultStore {
        let storage: any ObjectStorage =
            switch options.location {
            case .folder(let path): try FolderStorage(at: path)
            case .s3(let bucket, let prefix):
                S3Storage(options.s3, bucket: bucket, prefix: prefix, userAgent: options.userAgent)
            }
        return ResultStore(storage, options, log: log, metrics: metrics, standing: standing)
    }

    /// Reads the tombstones now and then, and sweeps when this process may.
    /// - Parameter maySweep: Returns true in at most one process of the cluster within the given time; nil for a
    ///   process that never sweeps.
    public func start(maySweep: (@Sendable (_ every: Duration) async -> Bool)? = nil) {
        let task = Task { [weak self, options] in
            var sweepAt = ContinuousClock.now + options.sweepInterval
            while !Task.isCancelled, let self {
                let isComplete = await reads.errors.tolerating { try await refresh() } != nil
                // A full storage is swept at once, by whichever worker notices it.
                if let maySweep, .now >= sweepAt || writes.takeFull() {
                    sweepAt = .now + options.sweepInterval
                    if await maySweep(options.sweepInterval) { await sweep() }
                }
                await Task.sleepUnlessCancelled(for: isComplete ? options.refreshInterval : .seconds(1))
            }
        }
        sweeping.withLock { $0 = task }
    }

    /// Writes what is queued, at most for a time, and releases everything.
    public func close(within time: Duration) async {
        let task = sweeping.withLock { $0 }
        task?.cancel()
        let unwritten = await queue.close(within: time)
        if unwritten > 0 { log.warning("results not written to the result store", ["bytes": unwritten]) }
        await storage.close()
        await task?.value
    }

    // MARK: Reading

    /// Reads a result; nil if it is missing, has expired or has been purged, or while the storage is unavailable.
    ///
    /// An object that is truncated, altered or not ours is a miss and is logged. Rendering the result replaces it.
    /// Concurrent calls for the same key share one read.
    public func find(_ key: ResultKey) async -> StoredResult? {
        guard await isLoaded() else { return nil }
        let (search, isOwn) = searches.withLock { searches in
            if let search = searches[key] { return (search, false) }
            let search = Task { await look(for: key) }
            searches[key] = search
            return (search, true)
        }
        let found = await search.value
        if isOwn { searches.withLock { $0[key] = nil } }
        return found
    }

    /// The URL under which clients find a result; nil if they cannot, if the result is missing, has expired or has been
    /// purged, or while the storage is unavailable. It does not read the file.
    public func publicURL(of key: ResultKey) async -> String? {
        guard options.publicURL != nil, await isLoaded() else { return nil }
        guard let head = await reads.errors.tolerating({ try await head(of: key) }) ?? nil, head.isComplete else {
            return nil
        }
        return options.publicURL(ofObject: head.name)
    }

    private func look(for key: ResultKey) async -> StoredResult? {
        let (name, storage, limit) = (ObjectName.result(key), storage, options.maximumBytes)
        let object = await reads.attempt(within: options.readTimeout) { () throws(StorageError) in
            try await storage.read(name, upTo: limit)
        }
        guard let object else { return nil }
        guard let object, let record = valid(object.record, key) else {
            metrics.misses.add()
            return nil
        }
        var body = object.body
        if record.isNamed {
            guard let file = ObjectName.file(body) else {
                reject(key, "it does not contain the name of its file")
                return nil
            }
            let found = await reads.attempt(within: options.readTimeout) { () throws(StorageError) in
                try await storage.read(file, upTo: limit)
            }
            guard let found else { return nil }
            guard let found else {
                metrics.misses.add()
                return nil
            }
            body = found.body
        }
        guard record.describes(body) else {
            reject(key, "its file has been altered or truncated")
            return nil
        }
        metrics.hits.add()
        metrics.readBytes.add(body.count)
        return StoredResult(record, body: body)
    }

    /// Returns the record of a living result of this key; nil for anything else.
    func valid(_ json: [UInt8], _ key: ResultKey) -> ResultRecord? {
        let record: ResultRecord
        do {
            record = try ResultRecord(json: json)
        } catch {
            reject(key, "its record is invalid: \(error)")
            return nil
        }
        guard record.key == key else {
            reject(key, "it is the result \(record.key)")
            return nil
        }
        let isAlive = record.expiresAt > Timestamp.now.milliseconds
        return isAlive && !tombstones.withLock({ $0.cover(record) }) ? record : nil
    }

    /// Waits for the tombstones. All calls together wait for the time of one read after the start, so that a storage
    /// that is unavailable from the beginning does not delay every job.
    private func isLoaded() async -> Bool {
        let left = opened + options.readTimeout - .now
        // A cancelled task finds that they are not loaded.
        if !loaded.isSignaled, left > .zero { try? await loaded.wait(atMost: left) }
        return loaded.isSignaled
    }

    private func reject(_ key: ResultKey, _ reason: String) {
        metrics.rejected.add()
        log.warning("object in the result store rejected", ["key": key.description, "reason": reason])
    }

    // MARK: Writing

    /// Writes a result in the background. While the queue is full, it waits.
    /// - Throws: `CancellationError` if the task is cancelled while it waits.
    public func writeBehind(_ result: StoredResult, tags: [String]) async throws {
        try await enqueue(result.key.description, result.body.count) { [self] in
            _ = await writes.errors.tolerating { try await write(result, tags: tags, isDurable: false) }
        }
    }

    /// Writes a result again in the background, because its life has been extended. It keeps the tags of the job that
    /// made it.
    /// - Parameter tags: The tags of the job that extends its life, used if the store does not have the result.
    /// - Throws: `CancellationError` if the task is cancelled while it waits.
    public func extend(_ result: StoredResult, tags: [String]) async throws {
        try await enqueue(result.key.description, result.body.count) { [self] in
            _ = await writes.errors.tolerating {
                let former = try await record(of: result.key)
                try await write(result, tags: tags, replacing: former, isDurable: false)
            }
        }
    }

    /// Writes a result unless it is there, and returns when it survives a crash of the machine.
    /// - Throws: ``StorageError``; `CancellationError`.
    public func ensure(_ result: StoredResult, tags: [String]) async throws {
        await queue.wait(for: result.key.description)
        let head = try await head(of: result.key)
        if let head, head.isComplete, head.record.isNamed == (fileName(of: result) != nil),
            head.record.metadata.sha256 == result.metadata.sha256, head.record.expiresAt >= result.expiresAt
        {
            let (names, storage) = (Set([head.name, ObjectName.result(result.key)]), storage)
            return try await writes.run(within: options.writeTimeout) { () throws(StorageError) in
                for name in names { try await storage.synchronize(name) }
            }
        }
        try await write(result, tags: tags, replacing: head?.record, isDurable: true)
    }

    /// Starts a write in the background. Writes of one name run one after the other.
    /// - Throws: `CancellationError` if the task is cancelled while the queue is full.
    func enqueue(_ name: String, _ bytes: Int, _ write: @escaping @Sendable () async -> Void) async throws {
        if try await !queue.add(name, bytes, write) {
            log.warning("result not written to the result store: the worker stops", ["name": name])
        }
    }

    /// Writes a result, and corrects it if it has been purged or replaced meanwhile.
    /// - Parameter former: The record that is replaced. If it is of the same result, its scopes remain.
    private func write(
        _ result: StoredResult, tags: [String], replacing former: ResultRecord? = nil, isDurable: Bool
    ) async throws(StorageError) {
        var scopes = tags.map { PurgeScope.tag($0, of: result.tenant) } + (result.tenant.map { [.tenant($0)] } ?? [])
        if let former, former.fence == result.fence { scopes = former.scopes }
        try await putObjects(of: result, in: scopes, isDurable: isDurable)
        try await settle(result, in: scopes)
    }

    /// Corrects the object of a result if it has been purged or replaced before it was written.
    ///
    /// The object of a newer result may have been there before. It is written again and durably, because a job may
    /// require it.
    private func settle(_ result: StoredResult, in scopes: [PurgeScope]) async throws(StorageError) {
        var (result, isDeleted) = (result, false)
        for _ in 0..<Self.mostReplacements {
            switch await standing(result) {
            case .current: return
            case .replaced(var newer):
                newer.source = result.source
                try await putObjects(of: newer, in: scopes, isDurable: true)
                (result, isDeleted) = (newer, false)
            case .purged:
                if isDeleted { return }
                try await delete(result.key)
                isDeleted = true
            }
            metrics.fenced.add()
        }
    }

    /// Writes the entries, the file and the record of a result, unless it has been purged.
    private func putObjects(
        of result: StoredResult, in scopes: [PurgeScope], isDurable: Bool
    ) async throws(StorageError) {
        let file = fileName(of: result)
        let record = ResultRecord(result, scopes: scopes, isNamed: file != nil)
        guard !tombstones.withLock({ $0.cover(record) }) else { return metrics.fenced.add() }
        let end = Double(result.expiresAt) / 1000
        // An entry without an object is harmless. An object without its entries would escape a purge, also after a
        // crash.
        for scope in scopes { try await putEntry(ObjectName.entry(result.key, in: scope), until: end, isDurable: true) }
        var object = StorageObject(
            body: result.body, mediaType: result.metadata.format.mediaType, record: record.json, expiresAt: end,
            isPrivate: result.metadata.isPrivate)
        if let file {
            let old = try await self.file(of: result.key)
            object.record = StorageObject.marker().record
            try await put(object, as: ObjectName.files + file, isDurable: isDurable)
            object.record = record.json
            (object.body, object.mediaType) = (Array(file.utf8), "text/plain")
            try await put(object, as: ObjectName.result(result.key), isDurable: isDurable)
            // The source has another size now.
            if let old, old != ObjectName.files + file { try await delete([old]) }
        } else {
            try await put(object, as: ObjectName.result(result.key), isDurable: isDurable)
        }
        metrics.written.add()
        metrics.writtenBytes.add(result.body.count)
    }

    /// Writes an object, with up to three attempts.
    func put(_ object: StorageObject, as name: String, isDurable: Bool = true) async throws(StorageError) {
        var backoff = Backoff(initial: .milliseconds(200), maximum: .seconds(2), jitter: 0.5)
        let storage = storage
        for isLast in [false, false, true] {
            do throws(StorageError) {
                return try await oneOfTheWriters { () throws(StorageError) in
                    try await writes.run(within: options.writeTimeout) { () throws(StorageError) in
                        try await storage.write(object, as: name, isDurable: isDurable)
                    }
                }
            } catch {
                guard error.kind == .unavailable, !isLast else { throw error }
            }
            await Task.sleepUnlessCancelled(for: backoff.next())
        }
    }

    private func oneOfTheWriters(
        _ write: () async throws(StorageError) -> Void
    ) async throws(StorageError) {
        do {
            try await writers.acquire()
        } catch {
            throw StorageError(.cancelled, "cancelled while waiting to write")
        }
        defer { writers.release() }
        try await write()
    }

    /// Deletes objects.
    func delete(_ names: [String]) async throws(StorageError) {
        let storage = storage
        try await reads.run(within: options.writeTimeout) { () throws(StorageError) in try await storage.remove(names) }
    }

    /// Deletes a result in the background whose expiry was determined by this rule, which no longer allows storing it.
    /// Results of other rules stay.
    /// - Throws: `CancellationError` if the task is cancelled while the queue of writes is full.
    public func remove(_ key: ResultKey, of rule: String) async throws {
        try await enqueue(key.description, 0) { [self] in
            _ = await reads.errors.tolerating {
                guard try await record(of: key)?.rule == rule else { return }
                try await delete(key)
            }
        }
    }

    /// Writes, reads, lists and deletes a small object.
    /// - Throws: ``StorageError`` if the storage or the permissions do not allow one of them.
    public func probe() async throws(StorageError) {
        let (name, limit) = ("\(ObjectName.probes)\(String(UInt64.random(in: .min ... .max), radix: 16))", 1000)
        let object = StorageObject(body: Array("probe".utf8), mediaType: "text/plain", record: Array("{}".utf8))
        try await put(object, as: name)
        let storage = storage
        let isComplete = try await reads.run(within: options.readTimeout) { () throws(StorageError) in
            let found = try await storage.read(name, upTo: limit)
            return try await storage.list(ObjectName.probes, after: nil).contains { $0.name == name }
                && found?.body == object.body && found?.record == object.record
        }
        try await delete([name])
        guard isComplete else {
            throw StorageError(.misconfigured, "an object was not found after it had been written")
        }
    }

    /// The free space of the storage; nil if it has no limit.
    /// - Throws: ``StorageError``.
    public func freeBytes() async throws(StorageError) -> Int? { try await storage.space()?.free }
}

/// The counters of a result store.
struct ResultStoreMetrics: Sendable {
    let hits: Counter
    let misses: Counter
    /// Objects that were truncated, altered or not ours.
    let rejected: Counter
    let written: Counter
    let writtenBytes: Counter
    let readBytes: Counter
    /// Results that were not written because a purge had removed them.
    let fenced: Counter
    /// The size of the queue of writes.
    let queued: Gauge
    private let (swept, kept): ([Counter], [Gauge])

    init(_ metrics: Metrics) {
        func reads(_ result: String) -> Counter {
            metrics.counter(
                "halcyon_result_store_reads_total",
                help: "Lookups in the result store, by result: hit, miss, or an object that was rejected.",
                labels: ["result": result])
        }
        (hits, misses, rejected) = (reads("hit"), reads("miss"), reads("rejected"))
        func bytes(_ direction: String) -> Counter {
            metrics.counter(
                "halcyon_result_store_bytes_total", help: "Bytes of results read from and written to the result store.",
                labels: ["direction": direction])
        }
        (readBytes, writtenBytes) = (bytes("read"), bytes("written"))
        written = metrics.counter(
            "halcyon_result_store_written_total", help: "Results written to the result store.")
        fenced = metrics.counter(
            "halcyon_result_store_fenced_total",
            help: "Results that were not written because they had been purged or replaced in the meantime.")
        queued = metrics.gauge(
            "halcyon_result_store_queued_bytes", help: "Bytes of results that wait to be written to the result store.")
        swept = ["expired", "evicted", "purged"].map { reason in
            metrics.counter(
                "halcyon_result_store_swept_total", help: "Results that the sweeper has deleted, by reason.",
                labels: ["reason": reason])
        }
        kept = [
            metrics.gauge("halcyon_result_store_results", help: "Results in the folder after its last sweep."),
            metrics.gauge("halcyon_result_store_size_bytes", help: "Bytes of these results."),
        ]
    }

    /// Adds a sweep.
    func swept(_ report: SweepReport) {
        for (counter, count) in zip(swept, [report.expired, report.evicted, report.purged]) { counter.add(count) }
        for (gauge, value) in zip(kept, [report.results, report.bytes]) { gauge.set(Double(value)) }
    }
}
