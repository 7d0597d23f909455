import Concurrency
import Foundation
import FoundationNetworking
import TestSupport
import Testing

@testable import HalcyonKit

/// A simulated gateway that responds to a rendering when it is told to, and counts those that were cancelled.
private final class HeldGateway: Sendable {
    typealias Response = HalcyonClient.Response

    private let isOpen: Lock<@Sendable (URLRequest) -> Bool>
    private let cancelled = Lock<[String]>([])
    let transport: FakeTransport

    /// - Parameter isOpen: The requests that are answered at once.
    init(
        _ answer: @escaping @Sendable (URLRequest) -> Response = { .image($0.parameter("source")!) },
        isOpen: @escaping @Sendable (URLRequest) -> Bool = { _ in false }
    ) {
        let lock = Lock(isOpen)
        let cancelled = self.cancelled
        self.isOpen = lock
        transport = FakeTransport { request in
            do {
                while !lock.withLock({ $0 })(request) { try await Task.sleep(for: .milliseconds(1)) }
            } catch {
                cancelled.withLock { $0.append(request.parameter("source")!) }
                throw error
            }
            return answer(request)
        }
    }

    func open(_ condition: @escaping @Sendable (URLRequest) -> Bool = { _ in true }) {
        isOpen.withLock { $0 = condition }
    }
    var sources: [String] { transport.requests.map { $0.request.parameter("source")! } }
    var priorities: [String?] { transport.requests.map { $0.request.parameter("priority") } }
    var cancellations: [String] { cancelled.withLock { $0 } }
}

/// Loaders with a simulated gateway.
@Suite(.timeLimit(.minutes(2))) struct ImageLoaderTests {
    private let queue = DispatchQueue(label: "completions")

    private func client(_ transport: FakeTransport, jobTimeout: Duration = .seconds(60)) -> HalcyonClient {
        var configuration = HalcyonClient.Configuration()
        (configuration.retryTimeout, configuration.jobTimeout) = (.zero, jobTimeout)
        return HalcyonClient(
            URL(string: "https://gateway.invalid")!, configuration: configuration, transport: transport)
    }

    private func loader(
        _ transport: FakeTransport, _ change: (inout ImageLoader.Configuration) -> Void = { _ in }
    ) -> ImageLoader {
        var configuration = ImageLoader.Configuration()
        change(&configuration)
        return ImageLoader(client(transport), configuration: configuration, completionQueue: queue)
    }

    private func request(_ source: String, width: Double = 10) -> ImageRequest {
        ImageRequest(ImageJob.Source(source), width: width)
    }

    // MARK: Renderings

    @Test func sendsOneRequestForAnImage() async throws {
        let transport = FakeTransport { _ in .image("abcd") }
        var job = ImageJob("https://example.org/ä.jpg?a=b&c", width: 40.5, processors: [.roundCorner(.points(8))])
        (job.output.cropRect, job.output.format) = (.init(x: 0, y: 0, width: 1, height: 0.5), .webp)
        (job.output.upscale, job.tags, job.priority) = (true, ["x"], .normal)
        let image = try await loader(transport).load(ImageRequest(job))
        #expect(image.data == Data("abcd".utf8) && image.mediaType == "image/webp" && image.failure == nil)
        #expect(image.size == LoadedImage.Size(width: 4, height: 7) && image.cacheStatus == .network)
        #expect(image.size?.description == "4x7")
        let (sent, kind) = try #require(transport.requests.first)
        #expect(transport.requests.count == 1 && kind == .longPoll && sent.httpMethod == "GET")
        let query = URLComponents(url: sent.url!, resolvingAgainstBaseURL: false)!.queryItems!
        let expected = [
            "cropRect={\"height\":0.5,\"width\":1,\"x\":0,\"y\":0}", "format=webp", "priority=normal",
            "processors=[{\"roundCorner\":{\"radius\":8}}]", "source=https://example.org/ä.jpg?a=b&c",
            "tags=[\"x\"]", "upscale=true", "width=40.5", "wait=25.000",
        ]
        #expect(query.map { "\($0.name)=\($0.value!)" } == expected)
        #expect(sent.url!.path == "/v1/render" && sent.value(forHTTPHeaderField: "Accept") == "*/*")
    }

    @Test func submitsJobsThatNoURLDescribes() async throws {
        let client = client(FakeTransport { _ in .problem(400, "bad-request") })
        let job = ImageJob("https://example.org/a.jpg", width: 10)
        #expect(client.isRenderable(job))
        let changes: [(inout ImageJob) -> Void] = [
            { $0.id = "a" }, { $0.headers = ["a": "b"] }, { $0.metadata = 1 }, { $0.alternatives = ["initials:A"] },
            { $0.variants = [.init(width: 1)] }, { $0.output.blurhash = true }, { $0.output.name = "a" },
            { $0.delivery = .inline }, { $0.webhook = "a" }, { $0.slot = "a" }, { $0.deadline = .after(1) },
            { $0.source = .init(String(repeating: "a", count: 8193)) },
        ]
        for (index, change) in changes.enumerated() {
            var other = job
            change(&other)
            #expect(!client.isRenderable(other), "change \(index)")
            let refused = other
            let error = try await errorOf { try await client.render(refused) }
            guard case .invalidRequest = error else {
                Issue.record("\(error)")
                continue
            }
        }
        let transport = FakeTransport.ready(images: 1) { _ in Data("x".utf8) }
        var headers = job
        headers.headers = ["Authorization": "a"]
        let image = try await loader(transport).load(ImageRequest(headers))
        #expect(image.data == Data("x".utf8) && image.size == LoadedImage.Size(width: 1, height: 1))
        #expect(transport.requests.map(\.request.httpMethod) == ["POST", "GET", "GET"])
    }

    @Test func limitsTheLengthOfTheQuery() {
        var configuration = HalcyonClient.Configuration()
        let job = ImageJob(ImageJob.Source(String(repeating: "a", count: 100)), width: 1)
        for (limit, isRenderable) in [(120, true), (100, false)] {
            configuration.maximumQueryBytes = limit
            let transport = FakeTransport { _ in .image("") }
            let client = HalcyonClient(
                URL(string: "https://gateway.invalid")!, configuration: configuration, transport: transport)
            #expect(client.isRenderable(job) == isRenderable)
        }
    }

    @Test func continuesToWaitWhileTheImageIsRendered() async throws {
        let attempts = Lock(0)
        let slow = FakeTransport { _ in
            attempts.withLock {
                $0 += 1; return $0
            } < 3 ? .problem(504, "timeout") : .image("x")
        }
        #expect(try await client(slow).render(ImageJob("a:", width: 1)).data == Data("x".utf8))
        #expect(slow.requests.count == 3)
        let failing = FakeTransport { _ in .problem(504, "timeout", code: "timeout") }
        let failure = try await problemOf { try await client(failing).render(ImageJob("a:", width: 1)) }
        #expect(failure.code == .timeout && failing.requests.count == 1, "the cluster has retried it already")
        let stuck = FakeTransport { _ in .problem(504, "timeout") }
        let problem = try await problemOf {
            try await client(stuck, jobTimeout: .milliseconds(300)).render(ImageJob("a:", width: 1))
        }
        #expect(problem.kind == .timeout && (1...3).contains(stuck.requests.count))
        // Each request waits only for the rest of the time.
        let waits: [Double] = stuck.requests.compactMap { $0.request.parameter("wait").flatMap { Double($0) } }
        let isDecreasing = zip(waits, waits.dropFirst()).allSatisfy { $0 > $1 || $0 == 0 }
        #expect(waits.count == stuck.requests.count && isDecreasing)
        #expect(waits.allSatisfy { $0 <= 0.3 })
    }

    // MARK: Memory

    @Test func memoryAnswersWithoutARequest() async throws {
        let transport = FakeTransport { .image($0.parameter("source")!) }
        let loader = loader(transport)
        #expect(loader.cachedImage(for: request("a")) == nil)
        _ = try await loader.load(request("a"))
        let image = try await loader.load(request("a"))
        #expect(image.cacheStatus == .memory && image.data == Data("a".utf8) && image.size?.width == 1)
        #expect(loader.cachedImage(for: request("a")) == image && loader.memoryBytes == 1)
        var other = request("a")
        (other.job.priority, other.job.id) = (.high, "a")
        #expect(loader.cachedImage(for: other) == image, "the lane and the id do not change the image")
        #expect(loader.cachedImage(for: request("a", width: 11)) == nil && transport.requests.count == 1)
        loader.removeImage(for: request("a"))
        #expect(loader.cachedImage(for: request("a")) == nil && loader.memoryBytes == 0)
    }

    @Test func memoryIsLimited() async throws {
        let transport = FakeTransport { .image($0.parameter("source")!) }
        func kept(
            _ sources: [String], _ change: (inout ImageLoader.Configuration) -> Void
        ) async throws -> [String] {
            let loader = self.loader(transport, change)
            for source in sources { _ = try await loader.load(request(source)) }
            return sources.filter { loader.cachedImage(for: request($0)) != nil }
        }
        let four = ["aaaa", "bbbb", "cccc", "d"]
        #expect(try await kept(four) { $0.memoryBytes = 9 } == ["bbbb", "cccc", "d"])
        #expect(try await kept(four) { $0.memoryBytes = 8 } == ["cccc", "d"])
        #expect(try await kept(four) { $0.memoryCount = 1 } == ["d"])
        #expect(try await kept(four) { $0.maximumEntryBytes = 3 } == ["d"])
        #expect(try await kept(four) { _ in } == four)
        let loader = loader(transport)
        for source in four { _ = try await loader.load(request(source)) }
        loader.trimMemory(toBytes: 5)
        #expect(four.filter { loader.cachedImage(for: request($0)) != nil } == ["cccc", "d"])
        loader.trimMemory()
        #expect(loader.memoryBytes == 0)
    }

    @Test(arguments: [
        ["Cache-Control": "no-store", "ETag": "\"a\""], ["Cache-Control": "no-store", "Halcyon-Failure": "not_found"],
        ["Cache-Control": "max-age=0"], ["Cache-Control": "private"],
    ]) func doesNotKeepWhatCannotBeReused(headers: [String: String]) async throws {
        let transport = FakeTransport { _ in .image("x", headers) }
        let loader = loader(transport)
        let image = try await loader.load(request("a"))
        #expect(image.failure?.rawValue == headers["Halcyon-Failure"] && loader.memoryBytes == 0)
        #expect(try await loader.load(request("a")).cacheStatus == .network)
        #expect(transport.requests.allSatisfy { $0.request.value(forHTTPHeaderField: "If-None-Match") == nil })
    }

    @Test func revalidatesStaleImages() async throws {
        let version = Lock("a")
        let transport = FakeTransport { request in
            let tag = "\"\(version.withLock { $0 })\""
            guard request.value(forHTTPHeaderField: "If-None-Match") == tag else {
                return .image(version.withLock { $0 }, maxAge: 0, tag: tag)
            }
            return HalcyonClient.Response(status: 304, headers: ["cache-control": "max-age=60", "etag": tag])
        }
        let loader = loader(transport)
        #expect(try await loader.load(request("s")).cacheStatus == .network)
        #expect(loader.cachedImage(for: request("s")) == nil)
        let confirmed = try await loader.load(request("s"))
        #expect(confirmed.cacheStatus == .revalidated && confirmed.data == Data("a".utf8))
        #expect(try await loader.load(request("s")).cacheStatus == .memory && transport.requests.count == 2)
        // A fresh image is revalidated only on request.
        version.withLock { $0 = "b" }
        var again = request("s")
        again.cacheUse = .revalidate
        let changed = try await loader.load(again)
        #expect(changed.cacheStatus == .network && changed.data == Data("b".utf8))
        #expect(try await loader.load(again).cacheStatus == .revalidated)
        again.cacheUse = .reload
        #expect(try await loader.load(again).cacheStatus == .network && transport.requests.count == 5)
        #expect(
            transport.requests.map { $0.request.value(forHTTPHeaderField: "If-None-Match") }
                == [nil, "\"a\"", "\"a\"", "\"b\"", nil])
    }

    // MARK: Shared loads

    @Test func concurrentLoadsShareARequest() async throws {
        let gateway = HeldGateway()
        let loader = loader(gateway.transport)
        let loads = (0..<50).map { _ in Task { try await loader.load(request("a")) } }
        let other = Task { try await loader.load(request("b")) }
        try await until("both are requested") { Set(gateway.sources) == ["a", "b"] }
        for load in loads.prefix(20) { load.cancel() }
        for load in loads.prefix(20) { await #expect(throws: CancellationError.self) { try await load.value } }
        gateway.open()
        for load in loads.dropFirst(20) { #expect(try await load.value.data == Data("a".utf8)) }
        #expect(try await other.value.data == Data("b".utf8))
        #expect(gateway.sources.sorted() == ["a", "b"] && gateway.cancellations.isEmpty)
    }

    /// A load that begins while another one ends finds its image in memory.
    @Test func loadsThatOverlapEndsSendNoSecondRequest() async throws {
        for round in 0..<50 {
            let transport = FakeTransport { _ in .image("x") }
            let loader = loader(transport)
            try await withThrowingTaskGroup(of: LoadedImage.self) { group in
                for _ in 0..<64 { group.addTask { try await loader.load(request("a")) } }
                for try await image in group { #expect(image.data == Data("x".utf8)) }
            }
            #expect(transport.requests.count == 1, "round \(round)")
        }
    }

    @Test func theLastCancelledLoadCancelsTheRequest() async throws {
        let gateway = HeldGateway()
        let loader = loader(gateway.transport)
        let first = Task { try await loader.load(request("a")) }
        try await until("it is requested") { gateway.sources == ["a"] }
        let others = (0..<2).map { _ in Task { try await loader.load(request("a")) } }
        // Time to join the request. The test also holds if they do not.
        try await Task.sleep(for: .milliseconds(50))
        for load in others { load.cancel() }
        for load in others { await #expect(throws: CancellationError.self) { try await load.value } }
        #expect(gateway.cancellations.isEmpty)
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        try await until("the request is cancelled") { gateway.cancellations == ["a"] }
        // The next load starts again.
        gateway.open()
        #expect(try await loader.load(request("a")).cacheStatus == .network && gateway.sources == ["a", "a"])
    }

    @Test func immediateCancellationLeavesNothing() async throws {
        let gateway = HeldGateway()
        let loader = loader(gateway.transport)
        for number in 0..<100 {
            let load = Task { try await loader.load(request("\(number)")) }
            if number % 2 == 0 { await Task.yield() }
            load.cancel()
            await #expect(throws: CancellationError.self) { try await load.value }
        }
        try await until("all requests are cancelled") { gateway.cancellations.count == gateway.sources.count }
    }

    @Test func allWaitersGetTheErrorAndItIsNotKept() async throws {
        let isFailing = Lock(true)
        let gateway = HeldGateway { _ in
            isFailing.withLock { $0 } ? .problem(404, "not-found", code: "not_found") : .image("x")
        }
        let loader = loader(gateway.transport)
        let loads = (0..<5).map { _ in Task { try await loader.load(request("a")) } }
        try await until("it is requested") { !gateway.sources.isEmpty }
        // All five wait by now, or send a request of their own.
        gateway.open()
        for load in loads { #expect(try await problemOf { try await load.value }.code == .notFound) }
        isFailing.withLock { $0 = false }
        #expect(try await loader.load(request("a")).data == Data("x".utf8))
    }

    // MARK: Prefetching

    @Test func prefetchesAFewAtATimeInALowLane() async throws {
        let gateway = HeldGateway()
        let loader = loader(gateway.transport) {
            ($0.maximumConcurrentPrefetches, $0.maximumQueuedPrefetches) = (2, 3)
        }
        loader.prefetch(["a", "b", "c", "d", "e", "f", "a"].map { request($0) })
        try await until("two are requested") { gateway.sources.count == 2 }
        gateway.open { $0.parameter("source") == "a" }
        try await until("the next is requested") { gateway.sources.count == 3 }
        // Of the four that waited, the oldest was dropped.
        #expect(Set(gateway.sources.prefix(2)) == ["a", "b"] && gateway.sources[2] == "d")
        gateway.open()
        try await until("all are loaded") {
            ["a", "b", "d", "e", "f"].allSatisfy { loader.cachedImage(for: request($0)) != nil }
        }
        #expect(loader.cachedImage(for: request("c")) == nil)
        #expect(gateway.priorities == Array(repeating: "low", count: 5))
        loader.prefetch([request("a")])
        #expect(try await loader.load(request("a")).cacheStatus == .memory && gateway.sources.count == 5)
    }

    @Test func prefetchKeepsTheLaneOfTheJob() async throws {
        let transport = FakeTransport { .image($0.parameter("source")!) }
        let loader = loader(transport) { $0.prefetchPriority = .normal }
        var own = request("own")
        own.job.priority = .high
        loader.prefetch([request("a"), own])
        try await until("both are loaded") { transport.requests.count == 2 }
        let lanes = transport.requests.map { [$0.request.parameter("source"), $0.request.parameter("priority")] }
        #expect(Set(lanes) == [["a", "normal"], ["own", "high"]])
    }

    @Test func loadPromotesARunningPrefetch() async throws {
        let gateway = HeldGateway()
        let loader = loader(gateway.transport) { $0.maximumConcurrentPrefetches = 1 }
        loader.prefetch([request("a"), request("b")])
        try await until("it is requested") { gateway.sources == ["a"] }
        let loads = (0..<5).map { _ in Task { try await loader.load(request("a")) } }
        // One more request for the image, and the place among the prefetches is free for the next one.
        try await until("it is promoted") { gateway.sources.count == 3 }
        #expect(
            Set(zip(gateway.sources, gateway.priorities).dropFirst().map { "\($0) \($1 ?? "")" }) == ["a ", "b low"])
        gateway.open { $0.parameter("source") == "a" && $0.parameter("priority") == nil }
        for load in loads { #expect(try await load.value.data == Data("a".utf8)) }
        try await until("the request in the low lane is cancelled") { gateway.cancellations == ["a"] }
        #expect(gateway.sources.filter { $0 == "a" }.count == 2)
        loader.stopPrefetching()
        try await until("the other prefetch is cancelled") { gateway.cancellations == ["a", "b"] }
    }

    @Test func loadTakesAQueuedPrefetchOutOfTheQueue() async throws {
        let gateway = HeldGateway()
        let loader = loader(gateway.transport) { $0.maximumConcurrentPrefetches = 1 }
        loader.prefetch([request("a"), request("b")])
        let load = Task { try await loader.load(request("b")) }
        try await until("both are requested") { Set(gateway.sources) == ["a", "b"] }
        #expect(Set(zip(gateway.sources, gateway.priorities).map { "\($0) \($1 ?? "")" }) == ["a low", "b "])
        // The prefetch still wants the image when the load does not.
        load.cancel()
        await #expect(throws: CancellationError.self) { try await load.value }
        gateway.open()
        try await until("both are loaded") {
            ["a", "b"].allSatisfy { loader.cachedImage(for: request($0)) != nil }
        }
        #expect(gateway.cancellations.isEmpty && gateway.sources.count == 2)
    }

    @Test func failureOfAPrefetchDoesNotFailALoad() async throws {
        let gateway = HeldGateway { request in
            request.parameter("priority") == "low" ? .problem(503, "unavailable") : .image("x")
        }
        let loader = loader(gateway.transport)
        loader.prefetch([request("a")])
        try await until("it is requested") { gateway.sources.count == 1 }
        let load = Task { try await loader.load(request("a")) }
        try await until("it is promoted") { gateway.sources.count == 2 }
        gateway.open { $0.parameter("priority") == "low" }
        try await Task.sleep(for: .milliseconds(50))
        gateway.open()
        #expect(try await load.value.data == Data("x".utf8))
    }

    @Test func stopsPrefetching() async throws {
        let gateway = HeldGateway()
        let loader = loader(gateway.transport) { $0.maximumConcurrentPrefetches = 2 }
        loader.prefetch(["a", "b", "c", "d"].map { request($0) })
        try await until("two are requested") { gateway.sources.count == 2 }
        let load = Task { try await loader.load(request("b")) }
        try await until("one is promoted") { gateway.priorities.contains(nil) }
        loader.stopPrefetching(["a", "b", "c"].map { request($0) })
        try await until("the last one is requested") { gateway.sources.contains("d") }
        try await until("the first one is cancelled") { gateway.cancellations.contains("a") }
        loader.stopPrefetching()
        try await until("the last one is cancelled") { gateway.cancellations.contains("d") }
        gateway.open()
        #expect(try await load.value.data == Data("b".utf8), "a load is not affected")
    }

    @Test func prefetchingEndsWithTheLoader() async throws {
        let gateway = HeldGateway()
        var loader: ImageLoader? = self.loader(gateway.transport)
        loader?.prefetch([request("a")])
        try await until("it is requested") { gateway.sources == ["a"] }
        loader = nil
        try await until("it is cancelled") { gateway.cancellations == ["a"] }
    }

    // MARK: Stages

    /// A request with a placeholder, two previews and an image, told apart by their widths.
    private func staged() throws -> ImageRequest {
        ImageRequest(
            ImageJob("s", width: 30), placeholder: .blurHash(try BlurHash("LEHV6nWB2yk8pyo0adR*.7kCMdnj")),
            previews: [ImageJob.Output(width: 10), ImageJob.Output(width: 20)])
    }

    @Test func previewIsNotUploadedInPlaceOfTheImage() throws {
        var request = try staged()
        request.job.delivery = .put(template: "https://bucket.invalid/a.{format}")
        let preview = request.preview(request.previews[0])
        #expect(preview.job.delivery == nil && preview.job.output.width == 10)
    }

    private func name(_ stage: ImageStage) -> String {
        switch stage {
        case .placeholder(let bitmap): "\(bitmap.width)x\(bitmap.height)"
        case .preview(let image): "preview \(String(decoding: image.data, as: UTF8.self))"
        case .final(let image): "final \(String(decoding: image.data, as: UTF8.self))"
        }
    }

    private func stages(_ loader: ImageLoader, _ request: ImageRequest) -> (Task<Void, any Error>, Lock<[String]>) {
        let names = Lock<[String]>([])
        let task = Task { for try await stage in loader.stages(request) { names.withLock { $0.append(name(stage)) } } }
        return (task, names)
    }

    /// The widths in the order of their answers, and the stages.
    @Test(arguments: [
        (["10", "20", "30"], ["32x24", "preview 10", "preview 20", "final 30"]),
        (["20", "10", "30"], ["32x24", "preview 20", "final 30"]), (["30"], ["32x24", "final 30"]),
        (["10", "30"], ["32x24", "preview 10", "final 30"]),
    ]) func deliversStagesInOrder(widths: [String], expected: [String]) async throws {
        let gateway = HeldGateway { .image($0.parameter("width")!) }
        let loader = loader(gateway.transport)
        let (task, names) = stages(loader, try staged())
        try await until("all are requested") { gateway.sources.count == 3 }
        var open: Set<String> = []
        for width in widths {
            open.insert(width)
            gateway.open { [open] in open.contains($0.parameter("width")!) }
            try await until("it is loaded") {
                let request = ImageRequest("s", width: Double(width)!)
                return loader.cachedImage(for: request) != nil
            }
            // Delivery follows the load. One that is overtaken has nothing to wait for.
            guard expected.contains(where: { $0.hasSuffix(" \(width)") }) else { continue }
            try await until("it is delivered") { names.withLock { $0.last?.hasSuffix(" \(width)") == true } }
        }
        try await task.value
        #expect(names.withLock { $0 } == expected)
        try await until("the rest is cancelled") { gateway.cancellations.count == 3 - widths.count }
        // With the image in memory, there is nothing else to show.
        let (again, only) = stages(loader, try staged())
        try await again.value
        #expect(only.withLock { $0 } == ["final 30"] && gateway.sources.count == 3)
    }

    @Test func failuresOfPreviewsAreIgnoredAndThatOfTheImageIsThrown() async throws {
        let (isMissing, isShown) = (Lock("10"), Lock(false))
        let transport = FakeTransport { request in
            let width = request.parameter("width")!
            if width == isMissing.withLock({ $0 }) {
                return .problem(422, "unprocessable-image", code: "corrupt_image")
            }
            while width == "30", !isShown.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) }
            return .image(width, maxAge: 0)
        }
        let loader = loader(transport)
        let (task, names) = stages(loader, try staged())
        try await until("the preview is shown") { names.withLock { $0.last == "preview 20" } }
        isShown.withLock { $0 = true }
        try await task.value
        #expect(names.withLock { $0 } == ["32x24", "preview 20", "final 30"])
        isMissing.withLock { $0 = "30" }
        let (failing, _) = stages(loader, try staged())
        #expect(try await problemOf { try await failing.value }.code == .corruptImage)
    }

    @Test func limitsPreviewsAndSizesPlaceholders() async throws {
        let transport = FakeTransport { .image($0.parameter("width")!) }
        let strict = loader(transport) { $0.maximumPreviews = 1 }
        let request = try staged()
        let error = try await errorOf { for try await _ in strict.stages(request) {} }
        #expect(error.description.contains("maximumPreviews") && transport.requests.isEmpty)

        var wide = request
        (wide.job.output.width, wide.job.output.height, wide.previews) = (400, 100, [])
        let small = loader(transport) { $0.placeholderSide = 8 }
        let (task, names) = stages(small, wide)
        try await task.value
        #expect(names.withLock { $0 } == ["8x2", "final 400"])
        wide.placeholder = .bitmap(try Bitmap(color: "#102030"))
        wide.cacheUse = .reload
        let (plain, more) = stages(small, wide)
        try await plain.value
        #expect(more.withLock { $0 } == ["1x1", "final 400"])
        let wrong = loader(transport) { $0.placeholderSide = 0 }
        let refusal = try await errorOf { for try await _ in wrong.stages(request) {} }
        guard case .invalidRequest = refusal else {
            Issue.record("\(refusal)")
            return
        }
    }

    @Test func readsPlaceholdersFromEvents() throws {
        func variant(_ more: String) throws -> ImageEvent.Variant {
            let json = #"{"key": "k", "width": 1, "height": 1, "format": "png", "bytes": 1, "sha256": ""\#(more)}"#
            return try JSONDecoder().decode(ImageEvent.Variant.self, from: Data(json.utf8))
        }
        let hash = "LEHV6nWB2yk8pyo0adR*.7kCMdnj"
        let color = ##", "dominantColor": "#102030""##
        let both = try variant(#", "blurhash": "\#(hash)""# + color)
        #expect(ImageRequest.Placeholder(both) == .blurHash(try BlurHash(hash)))
        #expect(ImageRequest.Placeholder(try variant(color)) == .bitmap(try Bitmap(color: "#102030")))
        #expect(ImageRequest.Placeholder(try variant(", \"blurhash\": \"?\"")) == nil)
        #expect(ImageRequest.Placeholder(try variant("")) == nil)
    }

    /// A gateway that computes a BlurHash at once, and renders an image when `isShown` is true.
    private func computingGateway(_ isShown: Lock<Bool>) -> FakeTransport {
        let event = #"""
            {"id": "1", "type": "halcyon.image.ready", "time": "2026-11-21T10:31:07.250Z", "data": {
            "job": {"id": "x"}, "origin": "network", "timings": {}, "variants": [{"key": "k", "width": 64, "height": 48,
            "format": "png", "bytes": 1, "sha256": "", "blurhash": "LEHV6nWB2yk8pyo0adR*.7kCMdnj"}]}}
            """#
        return FakeTransport { request in
            if request.httpMethod == "POST" {
                return .init(status: 202, body: Data(#"{"id": "x", "lane": "high", "images": []}"#.utf8))
            }
            if request.url!.path.hasPrefix("/v1/jobs") {
                return .init(status: 200, body: Data(#"{"id": "x", "state": "ready", "event": \#(event)}"#.utf8))
            }
            while !isShown.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(5)) }
            return .image(request.parameter("source")!, maxAge: 0)
        }
    }

    @Test(arguments: [(1000, 2), (1, 3), (0, 3)])
    func remembersComputedPlaceholders(limit: Int, jobs: Int) async throws {
        let isShown = Lock(false)
        let transport = computingGateway(isShown)
        let loader = loader(transport) { $0.maximumPlaceholders = limit }
        for source in ["a", "b", "a"] {
            let request = ImageRequest(ImageJob.Source(source), width: 400, placeholder: .computed)
            isShown.withLock { $0 = false }
            let (task, names) = stages(loader, request)
            try await until("the placeholder is shown") { names.withLock { !$0.isEmpty } }
            isShown.withLock { $0 = true }
            try await task.value
            #expect(names.withLock { $0 } == ["32x24", "final \(source)"])
        }
        let sent = transport.requests.map(\.request).filter { $0.httpMethod == "POST" }
        #expect(sent.count == jobs)
        let body = String(decoding: sent[0].httpBody!, as: UTF8.self)
        #expect(body.contains(#""blurhash":true"#) && body.contains(#""width":64"#), "\(body)")
    }

    @Test func releasedStagesCancelTheirRequests() async throws {
        let gateway = HeldGateway()
        let loader = loader(gateway.transport)
        let (task, _) = stages(loader, try staged())
        try await until("all are requested") { gateway.sources.count == 3 }
        task.cancel()
        try await until("all are cancelled") { gateway.cancellations.count == 3 }
        _ = await task.result
        var stream: AsyncThrowingStream<ImageStage, any Error>? = loader.stages(try staged())
        try await until("all are requested again") { gateway.sources.count == 6 }
        #expect(stream != nil)
        stream = nil
        try await until("all are cancelled again") { gateway.cancellations.count == 6 }
    }

    // MARK: Slots

    @Test func slotDeliversOnlyTheLastRequest() async throws {
        let gateway = HeldGateway()
        let slot = ImageSlot(loader(gateway.transport))
        let (current, delivered, late) = (Lock(""), Lock<[String]>([]), Lock(0))
        @Sendable func show(_ source: String) {
            queue.sync {
                current.withLock { $0 = source }
                slot.load(request(source)) { result in
                    if current.withLock({ $0 }) != source { late.withLock { $0 += 1 } }
                    let text: String
                    do { text = name(try result.get()) } catch { text = "\(error)" }
                    delivered.withLock { $0.append(text) }
                }
            }
        }
        show("a")
        try await until("it is requested") { gateway.sources == ["a"] }
        show("b")
        try await until("the former request is cancelled") { gateway.cancellations == ["a"] }
        gateway.open()
        try await until("the image is delivered") { delivered.withLock { !$0.isEmpty } }
        #expect(delivered.withLock { $0 } == ["final b"])
        // Many images that are loaded, or on their way to the queue, when the slot is reused.
        for number in 0..<300 {
            show("\(number)")
            if number % 3 == 0 { try await Task.sleep(for: .microseconds(number * 10)) }
        }
        try await until("the last one is delivered") { delivered.withLock { $0.last == "final 299" } }
        #expect(late.withLock { $0 } == 0)
    }

    @Test func slotKeepsLateResultsBack() async throws {
        let transport = FakeTransport { .image($0.parameter("source")!) }
        let loader = loader(transport)
        let slot = ImageSlot(loader)
        let delivered = Lock<[String]>([])
        // The queue is blocked until the image of the first request has been loaded, so its result is late.
        let isBlocking = DispatchSemaphore(value: 0)
        queue.async { isBlocking.wait() }
        let request = request("a")
        slot.load(request) { _ in delivered.withLock { $0.append("a") } }
        try await until("the image is loaded") { loader.cachedImage(for: request) != nil }
        try await Task.sleep(for: .milliseconds(50))
        let other = self.request("b")
        slot.load(other) { _ in delivered.withLock { $0.append("b") } }
        isBlocking.signal()
        try await until("the second image is delivered") { delivered.withLock { !$0.isEmpty } }
        #expect(delivered.withLock { $0 } == ["b"])
        slot.clear()
    }

    @Test func slotDeliversErrorsAndEndsWithItsRelease() async throws {
        let gateway = HeldGateway({ _ in .problem(404, "not-found") }) { $0.parameter("source") == "none" }
        let loader = loader(gateway.transport)
        let errors = Lock(0)
        var slot: ImageSlot? = ImageSlot(loader)
        slot?.load(request("none")) { if case .failure(HalcyonError.problem) = $0 { errors.withLock { $0 += 1 } } }
        try await until("the error is delivered") { errors.withLock { $0 } == 1 }
        slot?.load(request("a")) { _ in errors.withLock { $0 += 1 } }
        try await until("it is requested") { gateway.sources == ["none", "a"] }
        slot = nil
        try await until("it is cancelled") { gateway.cancellations == ["a"] }
        queue.sync {}
        #expect(errors.withLock { $0 } == 1)
    }
}
