import HalcyonCluster
import HalcyonImaging
import HalcyonModel
import HalcyonWorker
import Redis
import Telemetry
import TestSupport
import Testing

/// Results that are rendered from archive copies of their sources, as observed at a real origin and in Redis.
@Suite(.limitedParallelism) struct ArchiveTests {
    /// `hubble.jpg` has 1000×872 pixels, and its copy 302×263.
    private static func enabled(_ options: inout WorkerOptions) {
        options.archive = ArchiveOptions(minimumPixels: 300_000, pixels: 80_000)
    }

    /// Runs `body` beside an nginx that serves `/picture.jpg`.
    private static func withOrigin(
        _ server: String, _ body: (WorkerFixture, Nginx, TemporaryFolder) async throws -> Void
    ) async throws {
        let folder = TemporaryFolder("archive")
        folder.write(try SampleImages.bytes("hubble.jpg"), to: "picture.jpg")
        let nginx = try await Nginx.start(serving: folder.path, server)
        let result: Result<Void, any Error>
        do {
            try await WorkerFixture.with { try await body($0, nginx, folder) }
            result = .success(())
        } catch { result = .failure(error) }
        await nginx.stop()
        await folder.remove()
        try result.get()
    }

    /// Submits a job and waits for its end.
    private static func job(
        _ cluster: WorkerFixture, _ nginx: Nginx, _ fields: String
    ) async throws -> EventLog.Entry {
        let id = "job-\(Int.random(in: 0..<1_000_000_000_000))"
        try await cluster.submit(#"{"id":"\#(id)","source":"\#(nginx.url)/picture.jpg",\#(fields)}"#)
        let event = try await cluster.events.terminal(of: id)
        #expect(event.kind == "ready", "\(event.message)")
        return event
    }

    private static func copy(_ nginx: Nginx) throws -> String {
        "halcyon:{\(SourceRequest(try Source("\(nginx.url)/picture.jpg")).sourceHash)}:copy"
    }

    private static func pixels(_ event: EventLog.Entry) -> String { event.variant["sha256"] as? String ?? "" }

    private static let made = #"halcyon_archive_copies_total{outcome="made"}"#
    private static let confirmed = #"halcyon_archive_copies_total{outcome="confirmed"}"#
    private static let fromCopy = #"halcyon_archive_renderings_total{from="copy"}"#
    private static let fromOriginal = #"halcyon_archive_renderings_total{from="original"}"#

    @Test func pixelsDoNotDependOnWhetherTheCopyExisted() async throws {
        try await Self.withOrigin("add_header Cache-Control max-age=600;") { cluster, nginx, _ in
            let metrics = Metrics()
            let (small, large) = (#""width":90"#, #""width":300"#)
            try await cluster.withWorker(metrics: metrics, Self.enabled) { () async throws in
                let first = try await Self.job(cluster, nginx, small)
                #expect(first.origin == "network")
                let second = try await Self.job(cluster, nginx, large)
                #expect(second.origin == "source-cache")
                // The facts are those of the original.
                for event in [first, second] {
                    let source = event.data["source"] as? [String: Any]
                    #expect(source?["bytes"] as? Int == (try SampleImages.bytes("hubble.jpg").count))
                    #expect(source?["width"] as? Int == 1000 && source?["height"] as? Int == 872)
                    #expect(source?["format"] as? String == "jpeg")
                }
                #expect(metrics.value(of: Self.made) == 1 && metrics.value(of: Self.fromCopy) == 2)
                #expect(try await nginx.statuses(atLeast: 1) == ["200"])
                // Without memory in Redis, and in the other order.
                _ = try await cluster.client.send("FLUSHALL")
                #expect(Self.pixels(try await Self.job(cluster, nginx, large)) == Self.pixels(second))
                #expect(Self.pixels(try await Self.job(cluster, nginx, small)) == Self.pixels(first))
                #expect(metrics.value(of: Self.made) == 2)
                // Without the caches, the copy is made for the result.
                let alone = #","cache":{"memory":false,"source":false}"#
                #expect(Self.pixels(try await Self.job(cluster, nginx, small + alone)) == Self.pixels(first))
                #expect(metrics.value(of: Self.made) == 3)
                let reloaded = try await Self.job(cluster, nginx, small + #","cache":{"reload":true}"#)
                #expect(Self.pixels(reloaded) == Self.pixels(first) && reloaded.origin == "network")
                // The same bytes keep their copy.
                #expect(metrics.value(of: Self.made) == 3 && metrics.value(of: Self.confirmed) == 1)
                #expect(metrics.value(of: Self.fromOriginal) == 0)
            }
        }
    }

    @Test func whatDoesNotFitIsRenderedFromTheOriginal() async throws {
        let jobs = [
            #""width":303"#, #""width":200,"cropRect":{"x":0.2,"y":0.2,"width":0.5,"height":0.5}"#,
            #""width":40,"cropRect":{"x":300,"y":200,"width":90,"height":90,"unit":"pixels"}"#,
            #""width":90,"trim":true"#, #""width":90,"linearLight":true"#, #""width":90,"interpolationQuality":"none""#,
            #""width":90,"before":[{"blur":{"radius":40}}]"#, #""width":90,"stripMetadata":false"#,
            #""width":90,"format":"png","bitDepth":16"#, #""info":true,"palette":true"#,
        ]
        let fitting = [
            #""width":300"#, #""width":60,"cropRect":{"x":0.2,"y":0.2,"width":0.5,"height":0.5}"#,
            #""width":12,"cropRect":{"x":300,"y":200,"width":90,"height":90,"unit":"pixels"}"#,
            #""width":90,"processors":[{"blur":{"radius":4}}]"#,
        ]
        try await Self.withOrigin("add_header Cache-Control max-age=600;") { cluster, nginx, _ in
            let variants = (jobs + fitting).map { "{\($0.replacing(#""info":true,"#, with: ""))}" }
            var expected: [String] = []
            try await cluster.withWorker { () async throws in
                for fields in jobs { expected.append(Self.pixels(try await Self.job(cluster, nginx, fields))) }
            }
            _ = try await cluster.client.send("FLUSHALL")
            let metrics = Metrics()
            try await cluster.withWorker(metrics: metrics, Self.enabled) { () async throws in
                for (fields, sha256) in zip(jobs, expected) {
                    #expect(Self.pixels(try await Self.job(cluster, nginx, fields)) == sha256, "\(fields)")
                }
                #expect(metrics.value(of: Self.fromCopy) == 0)
                #expect(metrics.value(of: Self.fromOriginal) == Double(jobs.count))
                var copied: [String] = []
                for fields in fitting { copied.append(Self.pixels(try await Self.job(cluster, nginx, fields))) }
                #expect(metrics.value(of: Self.fromCopy) == Double(fitting.count))
                // In one job, each variant is rendered from what it needs.
                _ = try await cluster.client.send("FLUSHALL")
                let all = try await Self.job(cluster, nginx, #""variants":[\#(variants.joined(separator: ","))]"#)
                let found = all.variants.map { $0["sha256"] as? String ?? "" }
                // A palette of the picture at its own size, instead of facts.
                for (place, sha256) in (expected + copied).enumerated() where place != jobs.count - 1 {
                    #expect(found[place] == sha256, "\(variants[place])")
                }
                #expect(all.variants.count == variants.count)
                #expect(metrics.value(of: Self.fromCopy) == Double(2 * fitting.count))
            }
        }
    }

    /// A job that needs the original besides its copy never waits for a permit while it holds another one.
    @Test func oneFetchPermitIsEnough() async throws {
        try await Self.withOrigin("add_header Cache-Control max-age=600;") { cluster, nginx, _ in
            let metrics = Metrics()
            try await cluster.withWorker(metrics: metrics) {
                Self.enabled(&$0)
                $0.fetches = 1
            } _: { () async throws in
                for fields in [#""width":303"#, #""width":304"#, #""variants":[{"width":90},{"width":305}]"#] {
                    _ = try await Self.job(cluster, nginx, fields)
                }
                #expect(metrics.value(of: Self.fromCopy) == 1)
                #expect(metrics.value(of: Self.fromOriginal) == 3)
            }
        }
    }

    @Test func unchangedSourceKeepsItsCopyAndAChangedOneHasANewOne() async throws {
        try await Self.withOrigin("add_header Cache-Control max-age=0;") { cluster, nginx, folder in
            let metrics = Metrics()
            // Only the copy is kept, because the source is too large for Redis.
            try await cluster.withWorker(metrics: metrics) {
                Self.enabled(&$0)
                $0.sourceTier.redisBytes = 1000
            } _: { () async throws in
                #expect(try await Self.job(cluster, nginx, #""width":90"#).origin == "network")
                #expect(try await Self.job(cluster, nginx, #""width":91"#).origin == "source-cache")
                #expect(metrics.value(of: Self.made) == 1 && metrics.value(of: Self.confirmed) == 1)
                folder.write(try SampleImages.bytes("astronaut.jpg"), to: "picture.jpg")
                let changed = try await Self.job(cluster, nginx, #""width":92"#)
                #expect(changed.origin == "network")
                // 512×512 pixels are too few for a copy.
                #expect((changed.data["source"] as? [String: Any])?["width"] as? Int == 512)
                #expect(try await cluster.client.send("EXISTS", .string(Self.copy(nginx))).integer == 0)
                folder.write(try SampleImages.bytes("rocket.jpg"), to: "picture.jpg")
                _ = try await Self.job(cluster, nginx, #""width":93"#)
                folder.write(try SampleImages.bytes("hubble.jpg"), to: "picture.jpg")
                let last = try await Self.job(cluster, nginx, #""width":94"#)
                #expect((last.data["source"] as? [String: Any])?["width"] as? Int == 1000)
                #expect(metrics.value(of: Self.made) == 2)
                #expect(try await nginx.statuses(atLeast: 5) == ["200", "304", "200", "200", "200"])
            }
        }
    }

    @Test func sourceWithoutValidatorsKeepsItsCopy() async throws {
        let server = "etag off; add_header Last-Modified \"\"; if_modified_since off;"
        try await Self.withOrigin(server) { cluster, nginx, _ in
            let metrics = Metrics()
            try await cluster.withWorker(metrics: metrics, Self.enabled) { () async throws in
                for width in 90...92 {
                    #expect(try await Self.job(cluster, nginx, #""width":\#(width)"#).origin == "network")
                }
                #expect(metrics.value(of: Self.made) == 1 && metrics.value(of: Self.confirmed) == 2)
            }
        }
    }

    @Test(arguments: ["no-store", "private", "max-age=600"])
    func copyIsStoredOnlyIfTheSourceMayBe(control: String) async throws {
        try await Self.withOrigin("add_header Cache-Control \"\(control)\";") { cluster, nginx, _ in
            let metrics = Metrics()
            try await cluster.withWorker(metrics: metrics, Self.enabled) { () async throws in
                _ = try await Self.job(cluster, nginx, #""width":90"#)
                _ = try await Self.job(cluster, nginx, #""width":91"#)
                let isStored = control == "max-age=600"
                #expect(metrics.value(of: Self.made) == (isStored ? 1 : 2))
                #expect(metrics.value(of: Self.fromCopy) == 2)
                let count = try await cluster.client.send("EXISTS", .string(Self.copy(nginx))).integer
                #expect(count == (isStored ? 1 : 0))
            }
        }
    }

    /// What other programs write there is never used.
    @Test(arguments: ["body", "about", "settings"])
    func damagedCopyIsMadeAgain(part: String) async throws {
        try await Self.withOrigin("add_header Cache-Control max-age=600;") { cluster, nginx, _ in
            let metrics = Metrics()
            try await cluster.withWorker(metrics: metrics, Self.enabled) { () async throws in
                let first = try await Self.job(cluster, nginx, #""width":90"#)
                let key = RedisArgument.string(try Self.copy(nginx))
                switch part {
                case "body":
                    var body = try #require(try await cluster.client.send("HGET", key, "body").bytes)
                    body[body.count / 2] ^= 255
                    _ = try await cluster.client.send("HSET", key, "body", .bytes(body))
                case "about": _ = try await cluster.client.send("HSET", key, "about", "{\"version\":1}")
                default:
                    let about = try #require(try await cluster.client.send("HGET", key, "about").string)
                    let other = about.replacing(#""identity":"1 300000 80000""#, with: #""identity":"1 300000 9""#)
                    #expect(other != about)
                    _ = try await cluster.client.send("HSET", key, "about", .string(other))
                }
                _ = try await Self.job(cluster, nginx, #""width":91"#)
                #expect(metrics.value(of: Self.made) == 2)
                let again = try await Self.job(cluster, nginx, #""width":90,"cache":{"memory":false}"#)
                #expect(Self.pixels(again) == Self.pixels(first))
                #expect(metrics.value(of: Self.made) == 2)
            }
        }
    }

    @Test func purgeRemovesTheCopy() async throws {
        try await Self.withOrigin("add_header Cache-Control max-age=600;") { cluster, nginx, _ in
            try await cluster.withWorker(Self.enabled) { () async throws in
                _ = try await Self.job(cluster, nginx, #""width":90"#)
                let key = RedisArgument.string(try Self.copy(nginx))
                #expect(try await cluster.client.send("EXISTS", key).integer == 1)
                let purge = Purge(.source(try Source("\(nginx.url)/picture.jpg")))
                #expect(try await Purger(cluster.client).run(purge) == 1)
                #expect(try await cluster.client.send("EXISTS", key).integer == 0)
                #expect(try await Self.job(cluster, nginx, #""width":90"#).origin == "network")
            }
        }
    }

    @Test func tenantsShareNoCopies() async throws {
        try await Self.withOrigin("add_header Cache-Control max-age=600;") { cluster, nginx, _ in
            let metrics = Metrics()
            try await cluster.withWorker(metrics: metrics, Self.enabled) { () async throws in
                var results: Set<String> = []
                for (index, tenant) in ["a", "b", "a", "b"].enumerated() {
                    let event = try await Self.job(cluster, nginx, #""width":\#(90 + index / 2),"tenant":"\#(tenant)""#)
                    #expect(event.origin == (index < 2 ? "network" : "source-cache"))
                    results.insert(Self.pixels(event))
                    // Each copy is stored in the hash slot of its tenant's results.
                    let slot = event.key.prefix { $0 != "}" }
                    #expect(try await cluster.client.send("EXISTS", .string("\(slot)}:copy")).integer == 1)
                }
                #expect(results.count == 2)
                #expect(metrics.value(of: Self.made) == 2)
                #expect(try await nginx.statuses(atLeast: 2) == ["200", "200"])
            }
        }
    }

    @Test func copySurvivesRestartsAndRedisFlushesInTheDiskCache() async throws {
        let kept = TemporaryFolder("kept")
        try await Self.withOrigin("add_header Cache-Control max-age=600;") { cluster, nginx, _ in
            var results: [String] = []
            for made in [1, 0] {
                let metrics = Metrics()
                try await cluster.withWorker(metrics: metrics) {
                    Self.enabled(&$0)
                    $0.sourceTier.folder = kept.path
                } _: { () async throws in
                    results.append(Self.pixels(try await Self.job(cluster, nginx, #""width":90"#)))
                    #expect(metrics.value(of: Self.made) == Double(made) && metrics.value(of: Self.fromCopy) == 1)
                }
                _ = try await cluster.client.send("FLUSHALL")
            }
            #expect(results[0] == results[1])
            #expect(try await nginx.statuses(atLeast: 1) == ["200"])
        }
        await kept.remove()
    }

    /// Jobs for several sizes at once share one fetch and one copy, in and between workers.
    @Test func copyIsMadeOnceInTheCluster() async throws {
        let photograph = try SampleImages.bytes("hubble.jpg")
        let gate = Latch()
        let origin = RawOrigin { _ in
            gate.wait()
            return RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"])
        }
        try await WorkerFixture.with(partitions: 4) { cluster in
            let metrics = [Metrics(), Metrics()]
            try await cluster.withWorkers(2, metrics: metrics, Self.enabled) { _ in
                for width in 90..<110 {
                    try await cluster.submit(
                        #"{"id":"\#(width)","source":"\#(origin.url("/a"))","width":\#(width)}"#)
                }
                try await until("the transfer has started") { !origin.requests.isEmpty }
                gate.open()
                for width in 90..<110 {
                    #expect(try await cluster.events.terminal(of: "\(width)").kind == "ready")
                }
                #expect(origin.requests.count == 1)
                #expect(metrics.reduce(0) { $0 + $1.value(of: Self.made) } == 1)
                #expect(metrics.reduce(0) { $0 + $1.value(of: Self.fromCopy) } == 20)
            }
        }
        try await origin.stop()
    }

    @Test func damagedSourceFailsAsWithoutAnArchive() async throws {
        try await Self.withOrigin("add_header Cache-Control max-age=600;") { cluster, nginx, folder in
            var bytes = try SampleImages.bytes("hubble.jpg")
            bytes.removeLast(bytes.count / 2)
            folder.write(bytes, to: "picture.jpg")
            try await cluster.withWorker(Self.enabled) { () async throws in
                try await cluster.submit(#"{"id":"cut","source":"\#(nginx.url)/picture.jpg","width":90}"#)
                #expect(try await cluster.events.terminal(of: "cut").code == "corrupt_image")
                let tolerant = try await Self.job(cluster, nginx, #""width":90,"tolerance":"truncated""#)
                #expect((tolerant.data["source"] as? [String: Any])?["truncated"] as? Bool == true)
            }
        }
    }
}
