import Concurrency
import Foundation
import FoundationNetworking
import Glibc
import Subprocess
import TestSupport
import Testing

@testable import HalcyonKit

/// Sends requests to a gateway and records them.
private final class RecordingTransport: HalcyonClient.Transport {
    typealias Record = (method: String, path: String, status: Int)

    private let transport = HalcyonClient.URLSessionTransport()
    private let recorded = Lock<[Record]>([])
    /// The requests that the client does not repeat.
    var requests: [Record] { recorded.withLock { $0.filter { !Self.isRepeated($0) } } }
    /// The number of the other requests. On a busy machine the cluster may be unavailable for a moment, or a rendering
    /// may take longer than the gateway waits.
    var repeats: Int { recorded.withLock { $0.filter { Self.isRepeated($0) }.count } }

    private static func isRepeated(_ record: Record) -> Bool { [503, 504].contains(record.status) }

    func send(
        _ request: URLRequest, kind: HalcyonClient.RequestKind, bufferLimit: Int
    ) async throws -> HalcyonClient.Response {
        let response = try await transport.send(request, kind: kind, bufferLimit: bufferLimit)
        recorded.withLock { $0.append((request.httpMethod!, request.url!.path, response.status)) }
        return response
    }
}

extension ClusterTests {
    /// Loaders against a complete cluster.
    @Suite struct ImageLoaderClusterTests {
        private var cluster: ClusterFixture { ClusterFixture.current }

        private func loader(_ transport: RecordingTransport) -> ImageLoader {
            ImageLoader(
                HalcyonClient(cluster.gateway, transport: transport),
                completionQueue: DispatchQueue(label: "completions"))
        }

        /// Returns the number of requests of a gateway for a route, by its metrics.
        private func count(of route: String, at port: UInt16) async throws -> Double {
            let (data, _) = try await URLSession.shared.data(from: URL(string: "http://127.0.0.1:\(port)/metrics")!)
            return String(decoding: data, as: UTF8.self).split(separator: "\n").reduce(0) { sum, line in
                guard line.hasPrefix("halcyon_gateway_requests_total{"), line.contains("route=\"\(route)\",") else {
                    return sum
                }
                return sum + (line.split(separator: " ").last.flatMap { Double($0) } ?? 0)
            }
        }

        @Test func oneRequestForAStoredImageAndNoneForOneInMemory() async throws {
            let port = LoopbackPort.reserve()
            let gateway = try await cluster.startGateway(on: port)
            let url = URL(string: "http://127.0.0.1:\(port)")!
            var job = ImageJob(cluster.url("coffee.jpg"), width: 131, format: .png)
            job.maxAge = 600
            _ = try await cluster.client.image(for: job)

            let transport = RecordingTransport()
            let loader = ImageLoader(HalcyonClient(url, transport: transport))
            let request = ImageRequest(job)
            let first = try await loader.load(request)
            #expect(first.cacheStatus == .network && first.mediaType == "image/png" && first.size?.width == 131)
            // Eighty loads at the same time, of the image in memory and of another one.
            let other = ImageRequest(cluster.url("coffee.jpg"), width: 132)
            try await withThrowingTaskGroup(of: LoadedImage.self) { group in
                for number in 0..<80 { group.addTask { try await loader.load(number % 2 == 0 ? request : other) } }
                for try await image in group { #expect(image.size?.width == 132 || image.cacheStatus == .memory) }
            }
            #expect(transport.requests.map(\.path) == ["/v1/render", "/v1/render"])
            let renders = try await count(of: "GET /v1/render", at: port)
            #expect(renders >= 2 && renders <= Double(2 + transport.repeats))
            for route in ["POST /v1/jobs", "GET /v1/jobs/{id}", "GET /v1/images/{key}"] {
                #expect(try await count(of: route, at: port) == 0)
            }
            await gateway.stop()
        }

        @Test func revalidatesWith304() async throws {
            let transport = RecordingTransport()
            let loader = loader(transport)
            var request = ImageRequest(cluster.url("rocket.jpg"), width: 77)
            request.job.maxAge = 600
            let first = try await loader.load(request)
            request.cacheUse = .revalidate
            let second = try await loader.load(request)
            #expect(second.cacheStatus == .revalidated && second.data == first.data && second.size == first.size)
            request.cacheUse = .fresh
            #expect(try await loader.load(request).cacheStatus == .memory)
            #expect(transport.requests.map(\.status) == [200, 304])
        }

        @Test func obeysTheCacheControlOfTheResponse() async throws {
            let origin = try await CacheControlOrigin.start()
            let transport = RecordingTransport()
            let loader = loader(transport)
            for (name, start, bytes) in CacheControlOrigin.images {
                let unstored = ImageRequest(.init(origin.url(name, "no-store")), width: 400, height: 300)
                for _ in 0..<2 {
                    let image = try await loader.load(unstored)
                    #expect(image.cacheStatus == .network && image.data.starts(with: start))
                    #expect(image.data.count >= bytes && image.size?.width == 400, "\(name)")
                }
                #expect(loader.memoryBytes == 0)
            }
            #expect(transport.requests.count == 6)
            // The image expires with the response of the origin, and has not changed since.
            let short = ImageRequest(.init(origin.url("small", "max-age=3")), width: 40)
            let image = try await loader.load(short)
            try await until("it is stale") { loader.cachedImage(for: short) == nil }
            let again = try await loader.load(short)
            #expect(again.cacheStatus == .revalidated && again.data == image.data)
            try await origin.origin.stop()
        }

        /// The gateway accepts all fields that the client puts into a URL.
        @Test func gatewayAcceptsAllFieldsOfRenderings() async throws {
            var job = ImageJob(cluster.url("chelsea.jpg"), width: 120, height: 90, screenScale: 2)
            (job.output.contentMode, job.output.scaleOptions) = (.scaleAspectFill, .fitCropsExcess)
            (job.output.cropRect, job.output.gravity) = (
                .init(x: 0, y: 0, width: 1, height: 0.5), .point(x: 0.2, y: 0.3)
            )
            (job.output.sizeForDisplay, job.output.upscale) = (true, true)
            (job.output.interpolationQuality, job.output.background) = (.medium, "rgb(1, 2, 3)")
            job.output.processors = [.roundCorner(.widthFraction(0.1), background: "white"), .blur(radius: 1)]
            (job.output.format, job.output.quality, job.output.effort) = (.webp, 70, 2)
            (job.output.lossless, job.output.progressive, job.output.stripMetadata) = (false, true, true)
            (job.output.keepProfile, job.output.frames, job.output.tolerance) = (false, 1, .truncated)
            (job.maxAge, job.cache, job.priority, job.tags) = (60, .init(), .normal, ["a", "b c"])
            job.fallback = ImageJob.Fallback.none
            job.cache?.source = true
            let image = try await cluster.client.render(job)
            #expect(image.mediaType == "image/webp" && image.size == LoadedImage.Size(width: 240, height: 180))
            var natural = ImageJob(.video("data:,", seconds: 1), .init())
            natural.output.sizer = .aspectScaleDownByWidth(30)
            let problem = try await problemOf { try await cluster.client.render(natural) }
            #expect(problem.kind != .badRequest, "\(problem)")
            let avatar = try await cluster.client.render(
                ImageJob(.initials("1", background: "red"), width: 20, format: .png))
            #expect(avatar.size == LoadedImage.Size(width: 20, height: 20))
        }

        @Test func fallbackPicturesHaveTheFailureOfTheJob() async throws {
            var job = ImageJob(cluster.url("none.jpg"), width: 20)
            job.fallback = .source("initials:F")
            let transport = RecordingTransport()
            let loader = loader(transport)
            let image = try await loader.load(ImageRequest(job))
            #expect(image.failure == .notFound && !image.data.isEmpty && loader.memoryBytes == 0)
            #expect(image.size == LoadedImage.Size(width: 20, height: 20))
        }

        @Test func theLastCancelledLoadCancelsTheJob() async throws {
            let origin = RawOrigin { _ in [.awaitEnd] }
            let (shared, single) = (origin.url("/shared.jpg"), origin.url("/single.jpg"))
            let requests = [shared, single].map { ImageRequest(ImageJob.Source($0), width: 90) }
            let events = try await cluster.client.events(EventStream.Filter(types: [.cancelled]))
            let loader = loader(RecordingTransport())
            let first = Task { try await loader.load(requests[0]) }
            let only = Task { try await loader.load(requests[1]) }
            try await until("the jobs have begun") { origin.requests.count == 2 }
            let others = (0..<2).map { _ in Task { try await loader.load(requests[0]) } }
            // Time to join the request of the first one. The test also holds if they do not.
            try await Task.sleep(for: .milliseconds(50))
            for load in others + [only] {
                load.cancel()
                await #expect(throws: CancellationError.self) { try await load.value }
            }
            var cancelled: [String] = []
            for try await message in events {
                guard let subject = message.event?.subject, [shared, single].contains(subject) else { continue }
                cancelled.append(subject)
                if subject == shared { break }
                first.cancel()
            }
            await #expect(throws: CancellationError.self) { try await first.value }
            // The first load kept its job.
            #expect(cancelled.first == single && origin.requests.count == 2)
            try await origin.stop()
        }

        @Test func loadPromotesAPrefetch() async throws {
            let photograph = try SampleImages.bytes()
            let isOpen = Lock(false)
            let origin = RawOrigin { _ in
                [.wait(until: { isOpen.withLock { $0 } })] + RawOrigin.Step.response(photograph)
            }
            let request = ImageRequest(.init(origin.url("/promoted.jpg")), width: 90)
            let loader = loader(RecordingTransport())
            loader.prefetch([request])
            try await until("the job has begun") { !origin.requests.isEmpty }
            let load = Task { try await loader.load(request) }
            // Time to send the second job, which the cluster coalesces with the first one.
            try await Task.sleep(for: .milliseconds(300))
            isOpen.withLock { $0 = true }
            #expect(try await load.value.size?.width == 90)
            #expect(origin.requests.count == 1)
            try await origin.stop()
        }

        @Test func deliversAComputedPlaceholderAndPreviews() async throws {
            let photograph = try SampleImages.bytes("coffee.jpg")
            let origin = RawOrigin { _ in RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"]) }
            let loader = loader(RecordingTransport())
            var request = ImageRequest(
                .init(origin.url("/stages.jpg")), width: 300, height: 200, placeholder: .computed)
            request.previews = [ImageJob.Output(width: 30, height: 20), ImageJob.Output(width: 75, height: 50)]
            func stages() async throws -> [ImageStage] {
                var stages: [ImageStage] = []
                for try await stage in loader.stages(request) { stages.append(stage) }
                return stages
            }
            func rank(_ stage: ImageStage) -> Int {
                switch stage {
                case .placeholder: 0
                case .preview(let image), .final(let image): image.size!.width
                }
            }
            // All of them are made at the same time, so any but the last may be overtaken.
            let ranks = try await stages().map(rank)
            #expect(ranks == ranks.sorted() && ranks.last == 300 && Set(ranks).count == ranks.count)
            #expect(Set(ranks).isSubset(of: [0, 30, 75, 300]))
            // When the placeholder was computed in time, it is the first stage the next time.
            loader.trimMemory()
            if ranks.first == 0 {
                guard case .placeholder(let bitmap)? = try await stages().first else {
                    Issue.record("the placeholder was not remembered")
                    return
                }
                #expect(bitmap.width == 32 && bitmap.height == 21)
                #expect(Set(bitmap.pixels).count > 10)
            }
            try await origin.stop()
        }

        @Test func computedPlaceholderComesBeforeASlowImage() async throws {
            let photograph = try SampleImages.bytes("coffee.jpg")
            let isOpen = Lock(false)
            // The image needs a watermark that is slow, and the placeholder does not.
            let origin = RawOrigin { request in
                let pause: [RawOrigin.Step] =
                    request.path == "/slow.jpg" ? [.wait(until: { isOpen.withLock { $0 } })] : []
                return pause + RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"])
            }
            var request = ImageRequest(.init(origin.url("/fast.jpg")), width: 60, placeholder: .computed)
            request.job.output.processors = [.watermark(.init(origin.url("/slow.jpg")))]
            var names: [String] = []
            for try await stage in loader(RecordingTransport()).stages(request) {
                switch stage {
                case .placeholder: names.append("placeholder")
                case .preview: names.append("preview")
                case .final: names.append("final")
                }
                isOpen.withLock { $0 = true }
            }
            #expect(names == ["placeholder", "final"])
            try await origin.stop()
        }

        @Test func serverExampleServesThumbnails() async throws {
            let folder = TemporaryFolder("server")
            let line = #"cd "$0" && exec "$@" >output 2>errors"#
            func run(_ arguments: [String]) async throws -> ChildProcess {
                try await ChildProcess.start(
                    "/bin/sh", ["-c", line, folder.path, BuiltExecutable.path("server-example")] + arguments)
            }
            @Sendable func output() -> String { String(decoding: folder.read("output"), as: UTF8.self) }
            #expect(try await run([]).exit() == .code(2))
            #expect(output().hasPrefix("usage: server-example "))

            let server = try await run([cluster.gateway.absoluteString, cluster.origin.url])
            try await until("it listens") { output().hasPrefix("http://127.0.0.1:") && output().hasSuffix("\n") }
            let base = output().dropLast()
            func get(_ path: String) async throws -> (body: Data, response: HTTPURLResponse) {
                let (body, response) = try await URLSession.shared.data(from: URL(string: base + path)!)
                return (body, response as! HTTPURLResponse)
            }
            let first = try await get("/coffee.jpg?width=64")
            #expect(first.response.statusCode == 200 && first.body.starts(with: Data("RIFF".utf8)))
            #expect(first.response.value(forHTTPHeaderField: "Content-Type") == "image/webp")
            #expect(first.response.value(forHTTPHeaderField: "Cache-Status") == "thumbnails; fwd=miss")
            let second = try await get("/coffee.jpg?width=64")
            #expect(second.body == first.body)
            #expect(second.response.value(forHTTPHeaderField: "Cache-Status") == "thumbnails; hit")
            for (path, status) in [
                ("/coffee.jpg", 400), ("/coffee.jpg?width=0", 400), ("/none.jpg?width=64", 404), ("/?width=64", 404),
                ("/a%2F..%2Fcoffee.jpg?width=64", 404), ("/%2E%2E/coffee.jpg?width=64", 404),
            ] {
                #expect(try await get(path).response.statusCode == status, "\(path)")
            }
            server.send(SIGTERM)
            #expect(await server.exit() == .code(0))
            await folder.remove()
        }
    }
}
