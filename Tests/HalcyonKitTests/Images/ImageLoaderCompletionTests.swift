import Concurrency
import Foundation
import Glibc
import HalcyonKit
import Subprocess
import TestSupport
import Testing

extension ClusterTests {
    /// Completions, which are always called exactly once.
    @Suite struct ImageLoaderCompletionTests {
        private var cluster: ClusterFixture { ClusterFixture.current }

        /// A recorder of the calls of one completion.
        private final class Calls: Sendable {
            private let results = Lock<[Result<LoadedImage, any Error>]>([])
            private let queue = DispatchQueue(label: "completions")

            func loader(_ client: HalcyonClient) -> ImageLoader { ImageLoader(client, completionQueue: queue) }
            func add(_ result: Result<LoadedImage, any Error>) { results.withLock { $0.append(result) } }
            var count: Int { results.withLock { $0.count } }

            /// Returns the result of the only call, after a pause in which another one could be made.
            func only() async throws -> Result<LoadedImage, any Error> {
                try await until("the completion is called") { self.count > 0 }
                try await Task.sleep(for: .milliseconds(300))
                #expect(count == 1)
                return results.withLock { $0[0] }
            }
        }

        @Test func completesOnceWithTheImage() async throws {
            let calls = Calls()
            let load = calls.loader(cluster.client).load(ImageRequest(cluster.url("coffee.jpg"), width: 90)) {
                calls.add($0)
            }
            let image = try await calls.only().get()
            #expect(image.size == LoadedImage.Size(width: 90, height: 60) && image.mediaType == "image/jpeg")
            #expect(image.cacheStatus == .network && image.data.starts(with: [0xff, 0xd8]))
            load.cancel()
            #expect(try await calls.only().get() == image, "a completed load is not cancelled")
        }

        @Test func completesOnceWithTheFailure() async throws {
            let calls = Calls()
            calls.loader(cluster.client).load(ImageRequest(cluster.url("none.jpg"), width: 90)) { calls.add($0) }
            let error = try await #require(throws: HalcyonError.self) { try await calls.only().get() }
            guard case .problem(let problem) = error else {
                Issue.record("\(error)")
                return
            }
            #expect(problem.code == .notFound && problem.status == 404)
        }

        @Test func completesOnceOnCancellationAndCancelsTheJob() async throws {
            let (calls, origin) = (Calls(), RawOrigin { _ in [.awaitEnd] })
            var job = ImageJob(ImageJob.Source(origin.url("/a.jpg")), width: 90)
            job.id = UUID().uuidString
            let events = try await cluster.client.events(EventStream.Filter(types: [.cancelled], jobs: [job.id!]))
            let load = calls.loader(cluster.client).load(ImageRequest(job)) { calls.add($0) }
            try await until("the job has begun") { !origin.requests.isEmpty }
            load.cancel()
            load.cancel()
            await #expect(throws: CancellationError.self) { try await calls.only().get() }
            for try await _ in events { break }
            try await origin.stop()
        }

        @Test func completesOnceOnImmediateCancellation() async throws {
            for _ in 0..<50 {
                let calls = Calls()
                calls.loader(cluster.client).load(ImageRequest("initials:C", width: 9)) { calls.add($0) }.cancel()
                try await until("the completion is called") { calls.count > 0 }
                #expect(calls.count == 1)
            }
        }

        @Test func completesOnceWhenTheGatewayIsUnreachable() async throws {
            let calls = Calls()
            var configuration = HalcyonClient.Configuration()
            configuration.retryTimeout = .seconds(1)
            let unreachable = HalcyonClient(
                URL(string: "http://127.0.0.1:\(LoopbackPort.reserve())")!, configuration: configuration)
            calls.loader(unreachable).load(ImageRequest("initials:N", width: 9)) { calls.add($0) }
            let error = try await #require(throws: HalcyonError.self) { try await calls.only().get() }
            #expect(error.isTransient)
        }

        @Test func completesOnceWhenTheGatewayStaysDown() async throws {
            let (calls, origin) = (Calls(), RawOrigin { _ in [.awaitEnd] })
            let port = LoopbackPort.reserve()
            let gateway = try await cluster.startGateway(on: port)
            var configuration = HalcyonClient.Configuration()
            configuration.retryTimeout = .seconds(2)
            let client = HalcyonClient(URL(string: "http://127.0.0.1:\(port)")!, configuration: configuration)
            calls.loader(client).load(ImageRequest(ImageJob.Source(origin.url("/g.jpg")), width: 90)) { calls.add($0) }
            try await until("the job has begun") { !origin.requests.isEmpty }
            kill(gateway.pid, SIGKILL)
            let error = try await #require(throws: HalcyonError.self) { try await calls.only().get() }
            guard case .connectionFailed = error else {
                Issue.record("\(error)")
                return
            }
            await gateway.exit()
            try await origin.stop()
        }

        @Test func completesOnceWhenTheGatewayRestarts() async throws {
            let photograph = try SampleImages.bytes()
            let (calls, isRestarted) = (Calls(), Lock(false))
            // The origin responds once the gateway has restarted.
            let origin = RawOrigin { _ in
                while !isRestarted.withLock({ $0 }) { usleep(10_000) }
                return RawOrigin.Step.response(photograph)
            }
            let port = LoopbackPort.reserve()
            var gateway = try await cluster.startGateway(on: port)
            var configuration = HalcyonClient.Configuration()
            configuration.retryTimeout = .patience
            let client = HalcyonClient(URL(string: "http://127.0.0.1:\(port)")!, configuration: configuration)
            calls.loader(client).load(ImageRequest(ImageJob.Source(origin.url("/back.jpg")), width: 90)) {
                calls.add($0)
            }
            try await until("the job has begun") { !origin.requests.isEmpty || origin.connections > 0 }
            kill(gateway.pid, SIGKILL)
            await gateway.exit()
            gateway = try await cluster.startGateway(on: port)
            isRestarted.withLock { $0 = true }
            #expect(try await calls.only().get().size?.width == 90)
            await gateway.stop()
            try await origin.stop()
        }
    }
}
