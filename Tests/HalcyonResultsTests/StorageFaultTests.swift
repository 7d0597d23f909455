import Concurrency
import Formats
import Glibc
import HalcyonModel
import Telemetry
import TestSupport
import Testing

@testable import HalcyonResults

/// Storages that are slow, down, full or wrong.
@Suite(.limitedParallelism) struct StorageFaultTests {
    private func options(of origin: RawOrigin) throws -> ResultStoreOptions {
        var options = ResultStoreOptions.patient(.s3(bucket: "results", prefix: ""))
        options.s3.endpoint = try WebURL("http://127.0.0.1:\(origin.port)")
        return options
    }

    private static func error(_ status: String, _ code: String) -> [RawOrigin.Step] {
        RawOrigin.answer(status, [], "<?xml version=\"1.0\"?><Error><Code>\(code)</Code></Error>")
    }

    static let answers: [(String, [RawOrigin.Step], StorageError.Kind)] = [
        ("503", error("503 Slow Down", "SlowDown"), .unavailable),
        ("500", error("500 Internal Server Error", "InternalError"), .unavailable),
        ("403", error("403 Forbidden", "AccessDenied"), .forbidden),
        ("signature", error("403 Forbidden", "SignatureDoesNotMatch"), .forbidden),
        ("bucket", error("404 Not Found", "NoSuchBucket"), .misconfigured),
        ("region", error("301 Moved Permanently", "PermanentRedirect"), .misconfigured),
        ("full", error("507 Insufficient Storage", "XMinioStorageFull"), .full),
        ("cut", [.text("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), .close], .unavailable),
        ("reset", [.reset], .unavailable), ("rubbish", [.text("rubbish\r\n\r\n"), .close], .unavailable),
        ("xml", RawOrigin.answer("200 OK", [], "<a>"), .unavailable),
    ]

    @Test(arguments: answers.map(\.0)) func reportsErrorsOfS3(name: String) async throws {
        let (_, steps, kind) = try #require(Self.answers.first { $0.0 == name })
        let origin = RawOrigin { _ in steps }
        try await ResultStore.with(try options(of: origin), isStarted: false) { store in
            let error = await #expect(throws: StorageError.self) { try await store.storage.list("", after: nil) }
            #expect(error?.kind == kind, "\(String(describing: error))")
            if name != "xml" {
                let error = await #expect(throws: StorageError.self) {
                    try await store.storage.read("a", upTo: 1000)
                }
                #expect(error?.kind == kind, "\(String(describing: error))")
            }
        }
        try await origin.stop()
    }

    private static func page(_ keys: [String], isTruncated: Bool, next: String? = nil) -> [RawOrigin.Step] {
        let objects = keys.map { "<Contents><Key>\($0)</Key><Size>1</Size></Contents>" }.joined()
        let token = next.map { "<NextContinuationToken>\($0)</NextContinuationToken>" } ?? ""
        let list = "<IsTruncated>\(isTruncated)</IsTruncated>\(token)\(objects)"
        return RawOrigin.answer("200 OK", [], "<ListBucketResult>\(list)</ListBucketResult>")
    }

    /// A store may return fewer objects than it is asked for, and even none, although more follow.
    @Test func continuesListsThatAreCutShort() async throws {
        let origin = RawOrigin { request in
            let query = request.path.drop { $0 != "?" }
            if query.hasPrefix("?continuation-token=b%2B%2F%3D&") { return Self.page(["x/2"], isTruncated: false) }
            if query.hasPrefix("?continuation-token=a&") { return Self.page([], isTruncated: true, next: "b+/=") }
            return Self.page(["x/1"], isTruncated: true, next: "a")
        }
        try await ResultStore.with(try options(of: origin), isStarted: false) { store in
            let names = try await store.storage.list("x/", after: "x/0").map(\.name)
            #expect(names == ["x/1", "x/2"])
        }
        let starts = origin.requests.map { $0.path.contains("start-after=x%2F0") }
        #expect(starts == [true, false, false])
        try await origin.stop()
    }

    /// A list that ends too early would hide tombstones, and results from purges.
    @Test(arguments: [nil, "same"] as [String?]) func rejectsListsThatCannotBeContinued(next: String?) async throws {
        let origin = RawOrigin { _ in Self.page([], isTruncated: true, next: next) }
        try await ResultStore.with(try options(of: origin), isStarted: false) { store in
            let error = await #expect(throws: StorageError.self) { try await store.storage.list("", after: nil) }
            #expect(error?.kind == .unavailable)
        }
        try await origin.stop()
    }

    /// A hanging store costs each job the timeout at most five times, and nothing after that.
    @Test func skipsAStoreThatHangs() async throws {
        let origin = RawOrigin { $0.path.contains("list-type") ? RawOrigin.answer("200 OK", [], "<a/>") : [.awaitEnd] }
        var options = try options(of: origin)
        options.readTimeout = .milliseconds(50)
        let metrics = Metrics()
        try await ResultStore.with(options, metrics: metrics) { store in
            await store.loaded.wait()
            let start = ContinuousClock.now
            for _ in 0..<100 { #expect(await store.find(Samples.key("a")) == nil) }
            let seconds = start.duration(to: .now) / .seconds(1)
            #expect(metrics.value(of: "halcyon_result_store_up{operation=\"read\"}") == 0)
            #expect(metrics.value(of: "halcyon_result_store_up{operation=\"write\"}") == 1)
            // Five, and one probe after each pause of the circuit breaker, which lasts for at least 0.8 s.
            let reads = origin.requests.filter { !$0.path.contains("list-type") }
            #expect(reads.count <= 5 + Int(seconds / 0.8))
        }
        try await origin.stop()
    }

    /// A store that hangs from the beginning delays all jobs together by the timeout.
    @Test func skipsAStoreWhoseTombstonesCannotBeRead() async throws {
        let origin = RawOrigin(keepsLog: false) { _ in [.awaitEnd] }
        var options = try options(of: origin)
        options.readTimeout = .seconds(2)
        try await ResultStore.with(options) { store in
            var late = 0
            for number in 0..<50 {
                let start = ContinuousClock.now
                #expect(await store.find(Samples.key("\(number)")) == nil)
                if start.duration(to: .now) >= .seconds(2) { late += 1 }
            }
            // On a busy machine, some may take as long without waiting.
            #expect(late < 25)
        }
        try await origin.stop()
    }

    /// While the store is skipped, writes of a full queue end without a request, so that jobs do not wait.
    @Test func skippedWritesSendNoRequests() async throws {
        let origin = RawOrigin {
            $0.path.contains("list-type") ? RawOrigin.answer("200 OK", [], "<a/>") : [.awaitEnd]
        }
        var options = try options(of: origin)
        (options.writeTimeout, options.queueBytes) = (.seconds(1), 100 << 10)
        try await ResultStore.with(options) { store in
            await store.loaded.wait()
            for number in 0..<1000 {
                try await store.writeBehind(Samples.result(Samples.key("\(number)")), tags: [])
            }
        }
        // Each writer may wait for one response, and some requests find out if the store is available again.
        let writes = origin.requests.filter { $0.head.hasPrefix("PUT") }
        #expect(writes.count <= 2 * ResultStore.writers)
        try await origin.stop()
    }

    /// A store that hangs holds a limited number of connections.
    @Test func limitsConnections() async throws {
        let origin = RawOrigin(keepsLog: false) {
            $0.path.contains("list-type") ? RawOrigin.answer("200 OK", [], "<a/>") : [.awaitEnd]
        }
        try await ResultStore.with(try options(of: origin)) { store in
            await store.loaded.wait()
            for number in 0..<1000 {
                try await store.writeBehind(Samples.result(Samples.key("\(number)")), tags: [])
            }
            try await until("writes have begun") { origin.connections >= ResultStore.writers }
            let reads = Task {
                await withDiscardingTaskGroup { group in
                    for number in 0..<1000 { group.addTask { _ = await store.find(Samples.key("\(number)")) } }
                }
            }
            try await until("reads have begun") { origin.connections > ResultStore.writers }
            try await Task.sleep(for: .milliseconds(500))
            #expect(origin.connections <= 4 * ResultStore.writers)
            try await origin.stop()
            await reads.value
        }
    }

    @Test func retriesTransientErrorsOfWrites() async throws {
        let count = Lock(0)
        let origin = RawOrigin { request in
            guard request.head.hasPrefix("PUT") else { return RawOrigin.answer("200 OK", [], "<a/>") }
            let number = count.withLock { count in
                count += 1
                return count
            }
            return number < 3 ? Self.error("503 Slow Down", "SlowDown") : RawOrigin.answer()
        }
        let metrics = Metrics()
        try await ResultStore.with(try options(of: origin), metrics: metrics) { store in
            try await store.writeBehind(Samples.result(), tags: [])
            try await until("the result is written") {
                metrics.value(of: "halcyon_result_store_bytes_total{direction=\"written\"}") == 7
            }
        }
        #expect(count.withLock { $0 } == 3)
        try await origin.stop()
    }

    /// Entries of tags that could not be written with their result are written for the next hit.
    @Test func failedEntriesAreWrittenForLaterHits() async throws {
        let isDown = Lock(true)
        let origin = RawOrigin { request in
            guard request.head.hasPrefix("PUT") else { return RawOrigin.answer("200 OK", [], "<a/>") }
            return isDown.withLock { $0 } ? Self.error("403 Forbidden", "AccessDenied") : RawOrigin.answer()
        }
        let result = Samples.result()
        @Sendable func entries() -> Int { origin.requests.filter { $0.path.contains("/index/tag/") }.count }
        let metrics = Metrics()
        try await ResultStore.with(try options(of: origin), metrics: metrics) { store in
            try await store.writeBehind(result, tags: ["x"])
            try await until("the write has failed") {
                metrics.value(of: "halcyon_result_store_errors_total{operation=\"write\",reason=\"forbidden\"}") == 1
            }
            #expect(entries() == 1)
            let entry = ObjectName.entry(result.key, in: .tag("x", of: nil))
            for hit in 1...2 {
                try await store.index(result.key, under: ["x"], of: nil, until: Double(result.expiresAt) / 1000)
                await store.queue.wait(for: entry)
                #expect(entries() == 1 + hit)
                isDown.withLock { $0 = false }
            }
        }
        try await origin.stop()
    }

    /// Many hits of a result do not fill the queue while the store hangs.
    @Test func hitsQueueOneWritePerEntry() async throws {
        let isOpen = Lock(false)
        let origin = RawOrigin { request in
            guard request.head.hasPrefix("PUT") else { return RawOrigin.answer("200 OK", [], "<a/>") }
            return [.wait { isOpen.withLock { $0 } }] + RawOrigin.answer()
        }
        var options = try options(of: origin)
        options.writeTimeout = .seconds(600)
        let (metrics, result, tags) = (Metrics(), Samples.result(), ["x", "y"])
        let end = Double(result.expiresAt) / 1000
        try await ResultStore.with(options, metrics: metrics) { store in
            for _ in 0..<10 { try await store.index(result.key, under: tags, of: nil, until: end) }
            let entries = tags.map { ObjectName.entry(result.key, in: .tag($0, of: nil)) }
            let expected = Double(entries.reduce(0) { $0 + $1.utf8.count })
            let queued = metrics.value(of: "halcyon_result_store_queued_bytes")
            #expect(queued == expected)
            isOpen.withLock { $0 = true }
        }
        #expect(metrics.value(of: "halcyon_result_store_queued_bytes") == 0)
        try await origin.stop()
    }

    /// The queue holds as many bytes as it may, and the next job waits.
    @Test func fullQueueMakesJobsWait() async throws {
        let isOpen = Lock(false)
        let origin = RawOrigin { request in
            guard request.head.hasPrefix("PUT") else { return RawOrigin.answer("200 OK", [], "<a/>") }
            return [.wait { isOpen.withLock { $0 } }] + RawOrigin.answer()
        }
        var options = try options(of: origin)
        options.queueBytes = 10_000
        let (metrics, accepted) = (Metrics(), Lock(0))
        try await ResultStore.with(options, metrics: metrics) { store in
            let body = String(repeating: "x", count: 4000)
            let jobs = (0..<8).map { number in
                Task {
                    try await store.writeBehind(Samples.result(Samples.key("\(number)"), body: body), tags: [])
                    accepted.withLock { $0 += 1 }
                }
            }
            try await until("the queue is full") { accepted.withLock { $0 } == 3 }
            #expect(metrics.value(of: "halcyon_result_store_queued_bytes") == 12_000)
            let cancelled = Task { try await store.writeBehind(Samples.result(Samples.key("c")), tags: []) }
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            #expect(accepted.withLock { $0 } == 3)
            isOpen.withLock { $0 = true }
            for job in jobs { try await job.value }
        }
        #expect(metrics.value(of: "halcyon_result_store_bytes_total{direction=\"written\"}") == 32_000)
        #expect(metrics.value(of: "halcyon_result_store_queued_bytes") == 0)
        try await origin.stop()
    }

    /// Closing writes what is queued, but not for longer than it may.
    @Test func closesWithoutAStoreThatHangs() async throws {
        let origin = RawOrigin { _ in [.awaitEnd] }
        let store = try ResultStore.open(try options(of: origin), log: .silent, metrics: Metrics())
        try await store.writeBehind(Samples.result(), tags: [])
        await store.close(within: .milliseconds(200))
        try await store.writeBehind(Samples.result(), tags: [])
        try await origin.stop()
    }

    @Test func reportsFoldersThatCannotBeUsed() async throws {
        let folder = TemporaryFolder("results")
        folder.write(Array("x".utf8), to: "file")
        let error = #expect(throws: StorageError.self) {
            _ = try ResultStore.open(
                ResultStoreOptions(.folder("\(folder.path)/file/store")), log: .silent, metrics: Metrics())
        }
        #expect(error?.kind == .misconfigured)
        await folder.remove()
    }

    /// A folder on a file system of one megabyte.
    @Test(.enabled(if: canMount, "mounting a file system needs privileges"))
    func folderThatIsFullCanStillBeRead() async throws {
        let folder = TemporaryFolder("results")
        #expect(mount("tmpfs", folder.path, "tmpfs", 0, "size=1m") == 0)
        let metrics = Metrics()
        var options = ResultStoreOptions.patient(.folder("\(folder.path)/store"))
        options.refreshInterval = .milliseconds(10)
        let store = try ResultStore.open(options, log: .silent, metrics: metrics)
        let body = String(repeating: "x", count: 100_000)
        var kept: [StoredResult] = []
        var failure: StorageError?
        while failure == nil {
            let result = Samples.result(Samples.key("\(kept.count)"), body: body)
            do {
                try await store.put(result)
                kept.append(result)
            } catch {
                failure = error as? StorageError
            }
        }
        #expect(failure?.kind == .full && (5...10).contains(kept.count))
        let maySweep = Lock(false)
        store.start { _ in maySweep.withLock { $0 } }
        await store.loaded.wait()
        for result in kept { #expect(await store.find(result.key) == result) }
        #expect(metrics.value(of: "halcyon_result_store_errors_total{operation=\"write\",reason=\"full\"}") >= 1)
        // A sweep makes room: all but a tenth of the file system.
        maySweep.withLock { $0 = true }
        try await until("results are written again") {
            try await store.put(Samples.result(Samples.key("next"), body: body))
            return true
        }
        // Counted when the sweep has ended, which has deleted them before.
        try await until("the sweep is counted") {
            metrics.value(of: "halcyon_result_store_swept_total{reason=\"evicted\"}") >= 1
        }
        await store.close(within: .seconds(60))
        #expect(umount(folder.path) == 0)
        await folder.remove()
    }

    private static let canMount: Bool = {
        let folder = TemporaryFolder("mount")
        defer { rmdir(folder.path) }
        return mount("tmpfs", folder.path, "tmpfs", 0, "size=1m") == 0 && umount(folder.path) == 0
    }()
}
