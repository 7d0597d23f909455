import Foundation
import Subprocess
import TestSupport
import Testing

@testable import HalcyonKit

extension ClusterTests {
    /// The client against a complete cluster.
    @Suite struct ClientTests {
        private var cluster: ClusterFixture { ClusterFixture.current }

        /// Returns the width and height of an image, or nil if libvips cannot decode it.
        private func size(of data: Data) async throws -> String? {
            let folder = TemporaryFolder("picture")
            let file = folder.write(data, to: "image")
            let line =
                #"vips avg "$0/image" >/dev/null && vipsheader -f width "$0/image" >"$0/size" && vipsheader -f height "$0/image" >>"$0/size""#
            let exit = try await ChildProcess.start("/bin/sh", ["-c", line, folder.path]).exit()
            let size = String(decoding: folder.read("size"), as: UTF8.self).split(separator: "\n").joined(
                separator: "x")
            await folder.remove()
            #expect(file.hasSuffix("image"))
            return exit == .code(0) ? size : nil
        }

        @Test func submitsAJobWaitsForItAndReadsItsImage() async throws {
            let client = cluster.client
            var job = ImageJob(cluster.url("chelsea.jpg"), width: 200, height: 100)
            job.metadata = ["article": 17]
            let accepted = try await client.submit(job)
            #expect(accepted.lane == .normal && accepted.keys.count == 1)
            var state = try await client.jobState(id: accepted.id)
            #expect(state.id == accepted.id)
            while !state.status.isTerminal { state = try await client.jobState(id: accepted.id, timeout: .seconds(10)) }
            guard case .ready(let ready)? = state.event?.kind else {
                Issue.record("\(state)")
                return
            }
            #expect(ready.job.metadata == ["article": 17] && ready.variants.map(\.key) == accepted.keys)
            let data = try await client.imageData(forKey: accepted.keys[0])
            #expect(data.count == ready.variants[0].bytes)
            #expect(try await size(of: data) == "200x100")
        }

        @Test func submitsABatchAndFollowsIt() async throws {
            let client = cluster.client
            var jobs = (0..<6).map { ImageJob(ImageJob.Source("initials:B\($0)"), width: 20) }
            jobs.append(ImageJob("file:///none", width: 20))
            let id = "batch-\(UInt64.random(in: .min ... .max))"
            let events = try await client.events(EventStream.Filter(types: [.batchCompleted], batches: [id]))
            let submission = try await client.submitBatch(jobs, id: id, closes: false)
            #expect(submission.id == id && submission.accepted == 7 && submission.rejected == 0)
            let more = try await client.submitBatch(
                [ImageJob("initials:Z", width: 20), ImageJob("initials:Y", width: -1)], id: submission.id,
                firstIndex: 7)
            #expect(more.id == submission.id && more.accepted == 1 && more.rejected == 1)
            let batch = try await client.waitForBatch(id: id)
            #expect(batch.counts.ready == 7 && batch.counts.failed == 1 && batch.ended == 8 && batch.total == 8)
            let event = try await events.first { _ in true }?.event
            #expect(event?.kind == .batchCompleted(batch) && event?.subject == id)
            let failures = try await client.batchFailures(id: batch.id)
            #expect(failures.count == 1 && failures[0].index == 6)
            #expect(try await client.batches().contains { $0.id == batch.id })
            let retry = try await client.retryBatch(id: batch.id)
            #expect(retry.accepted == 1 && retry.id != batch.id)
            let other = try await client.submitBatch([ImageJob("initials:C", width: 20)], closes: false)
            try await client.cancelBatch(id: other.id)
            await #expect(throws: HalcyonError.self) { try await client.batch(id: "unknown") }
        }

        @Test func returnsAnImageInOneCall() async throws {
            let image = try await cluster.client.image(
                for: ImageJob(cluster.url("coffee.jpg"), width: 120, format: .png))
            #expect(
                image.variant.format == .png && image.variant.width == 120 && image.data.count == image.variant.bytes)
            #expect(try await size(of: image.data) == "120x80")
        }

        @Test func readsFactsAboutASource() async throws {
            let client = cluster.client
            var job = ImageJob(cluster.url("coffee.jpg"), ImageJob.Output())
            (job.output.phash, job.output.thumbhash) = (true, true)
            let facts = try await client.info(job)
            #expect(facts.format == "jpeg" && facts.bytes > 0 && facts.width > facts.height && facts.phash?.count == 16)
            // The same facts in an event, from the same result.
            job.output.info = ImageJob.InfoOptions()
            let image = try await client.image(for: job)
            #expect(image.variant.info == facts && image.variant.format.rawValue == "json")
            job.output.info = ImageJob.InfoOptions(location: true)
            #expect(try await client.info(job).location == nil, "it has none")
            job.output.width = 9
            await #expect(throws: HalcyonError.self) { try await client.info(job) }
        }

        @Test func returnsAllVariants() async throws {
            let variants = [
                ImageJob.Output(width: 60, height: 60), ImageJob.Output(width: 30, height: 20, format: .webp),
            ]
            let images = try await cluster.client.images(
                for: ImageJob(cluster.url("rocket.jpg"), ImageJob.Output(), variants: variants))
            #expect(images.map { "\($0.variant.width)x\($0.variant.height)" } == ["60x60", "30x20"])
            #expect(images.map(\.variant.format) == [.jpeg, .webp])
            #expect(images.allSatisfy { $0.data.count == $0.variant.bytes })
        }

        @Test func returnsAnImageDeliveredInline() async throws {
            var job = ImageJob(cluster.url("astronaut.jpg"), width: 50)
            (job.maxAge, job.delivery) = (-1, .inline)
            let image = try await cluster.client.image(for: job)
            #expect(image.data.count == image.variant.bytes)
        }

        @Test func returnsUncacheableImagesOfAnySize() async throws {
            let origin = try await CacheControlOrigin.start()
            for (name, start, bytes) in CacheControlOrigin.images {
                for cacheControl in ["no-store", "no-cache", "max-age=0"] {
                    let source = ImageJob.Source(origin.url(name, cacheControl))
                    let image = try await cluster.client.image(for: ImageJob(source, width: 400, height: 300))
                    #expect(image.data.starts(with: start) && image.data.count >= bytes, "\(name) \(cacheControl)")
                    #expect(image.data.count == image.variant.bytes)
                }
            }
            try await origin.origin.stop()
        }

        @Test func submitsABatchAndReturnsOneResultPerJob() async throws {
            let client = cluster.client
            var jobs = (1...20).map { ImageJob(.initials("A"), width: Double($0)) }
            jobs[3].output.quality = 1000
            let answers = try await client.submit(jobs)
            #expect(answers.count == 20)
            for (index, answer) in answers.enumerated() {
                switch answer {
                case .success(let accepted): #expect(index != 3 && accepted.keys.count == 1)
                case .failure(.problem(let problem)):
                    #expect(
                        index == 3 && problem.kind == .invalidJob && problem.status == 400
                            && problem.code == .invalidJob)
                case .failure(let error): Issue.record("\(error)")
                }
            }
            #expect(try await client.submit([]).isEmpty)
        }

        @Test func throwsProblemDetailsOfRejectedRequests() async throws {
            let client = cluster.client
            let invalid = try await problemOf { try await client.submit(ImageJob("initials:A", width: -1)) }
            #expect(invalid.kind == .invalidJob && invalid.status == 400 && invalid.code == .invalidJob)
            #expect(invalid.detail.contains("width"), "\(invalid.detail)")
            let job = try await problemOf { try await client.jobState(id: "nobody's/job") }
            #expect(job.kind == .notFound && job.status == 404)
            let image = try await problemOf {
                try await client.imageData(
                    forKey: "halcyon:{\(String(repeating: "0", count: 32))}:\(String(repeating: "0", count: 32))")
            }
            #expect(image.kind == .notFound)
            let cursor = try await problemOf {
                for try await _ in try await client.events(after: "nonsense") {}
            }
            #expect(cursor.kind == .badRequest)
        }

        @Test func throwsTheFailureOfAJob() async throws {
            let error = try await errorOf {
                try await cluster.client.image(for: ImageJob(cluster.url("none.jpg"), width: 10))
            }
            guard case .jobFailed(let failure) = error else {
                Issue.record("\(error)")
                return
            }
            #expect(failure.code == .notFound && failure.attempts == 1 && !failure.message.isEmpty)
        }

        @Test func reportsErrorsOfAuthenticationAndLimits() async throws {
            let port = LoopbackPort.reserve()
            let gateway = try await cluster.startGateway(
                on: port,
                [
                    "HALCYON_GATEWAY_KEYS_app": "0123456789abcdef0123456789abcdef",
                    "HALCYON_GATEWAY_KEYS_reader": "fedcba9876543210fedcba9876543210",
                    "HALCYON_GATEWAY_SCOPES_reader": "read",
                    "HALCYON_GATEWAY_CLIENTSTREAMS": "1",
                ])
            let url = URL(string: "http://127.0.0.1:\(port)")!
            var configuration = HalcyonClient.Configuration()
            configuration.retryTimeout = .zero
            let job = ImageJob("initials:K", width: 16)
            let anonymous = try await problemOf {
                try await HalcyonClient(url, configuration: configuration).submit(job)
            }
            #expect(anonymous.kind == .unauthorized && anonymous.status == 401)
            let reader = HalcyonClient(url, key: "fedcba9876543210fedcba9876543210", configuration: configuration)
            #expect(try await problemOf { try await reader.submit(job) }.kind == .forbidden)

            let client = HalcyonClient(url, key: "0123456789abcdef0123456789abcdef", configuration: configuration)
            let image = try await HalcyonClient(url, key: "0123456789abcdef0123456789abcdef").image(for: job)
            #expect(image.data.count == image.variant.bytes)
            let stream = try RawClient(port)
            try await stream.send(
                "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n"
                    + "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n\r\n")
            #expect(try await stream.head().status == 200)
            let problem = try await problemOf { try await client.events() }
            #expect(problem.kind == .tooManyRequests && problem.retryAfter != nil && problem.isTransient)
            withExtendedLifetime(stream) {}
            await gateway.stop()
        }

        @Test func cancelsAJob() async throws {
            let (client, origin) = (cluster.client, RawOrigin { _ in [.awaitEnd] })
            let events = try await client.events(EventStream.Filter(types: [.started, .cancelled]))
            let accepted = try await client.submit(ImageJob(ImageJob.Source(origin.url("/a.jpg")), width: 10))
            for try await message in events where message.event?.job?.id == accepted.id {
                switch message.event?.kind {
                case .started: try await client.cancelJob(id: accepted.id)
                default:
                    #expect(message.event?.kind == .cancelled(ImageEvent.Job(id: accepted.id)))
                    let again = try await problemOf {
                        // The gateway may not have recorded the end of the job yet.
                        while true { try await client.cancelJob(id: accepted.id) }
                    }
                    #expect(again.kind == .conflict)
                    try await origin.stop()
                    return
                }
            }
        }

        @Test func taskCancellationCancelsTheJob() async throws {
            let (client, origin) = (cluster.client, RawOrigin { _ in [.awaitEnd] })
            var job = ImageJob(ImageJob.Source(origin.url("/b.jpg")), width: 10)
            job.id = UUID().uuidString
            let events = try await client.events(EventStream.Filter(types: [.cancelled], jobs: [job.id!]))
            let task = Task { [job] in try await client.image(for: job) }
            try await until("the job has begun") { !origin.requests.isEmpty }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            for try await message in events {
                #expect(message.event?.job?.id == job.id)
                break
            }
            try await origin.stop()
        }

        @Test func timeoutCancelsTheJob() async throws {
            let origin = RawOrigin { _ in [.awaitEnd] }
            var configuration = HalcyonClient.Configuration()
            configuration.jobTimeout = .seconds(1)
            let client = HalcyonClient(cluster.gateway, configuration: configuration)
            var job = ImageJob(ImageJob.Source(origin.url("/c.jpg")), width: 10)
            job.id = UUID().uuidString
            let events = try await client.events(EventStream.Filter(types: [.cancelled], jobs: [job.id!]))
            let late = job
            let error = try await errorOf { try await client.image(for: late) }
            #expect(error == .timedOut(id: job.id!))
            for try await _ in events { break }
            try await origin.stop()
        }
    }
}

extension ImageEvent.Job {
    /// Creates a job reference with an id only.
    init(id: String) { self = try! JSONDecoder().decode(Self.self, from: JSONEncoder().encode(["id": id])) }
}
