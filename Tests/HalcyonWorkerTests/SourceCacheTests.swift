import Glibc
import HalcyonModel
import HalcyonSources
import HalcyonWorker
import TestSupport
import Testing

/// Cached sources are not fetched again, as observed at a real origin.
@Suite(.limitedParallelism) struct SourceCacheTests {
    /// Runs `body` beside a worker and an nginx that serves one photograph, `/rocket.jpg`.
    private static func withOrigin(
        _ server: String, _ change: @escaping (inout WorkerOptions) -> Void = { _ in },
        _ body: (WorkerFixture, Nginx, TemporaryFolder) async throws -> Void
    ) async throws {
        let folder = TemporaryFolder("origin")
        folder.write(try SampleImages.bytes(), to: "rocket.jpg")
        let nginx = try await Nginx.start(serving: folder.path, server)
        let result: Result<Void, any Error>
        do {
            try await WorkerFixture.with { cluster in
                try await cluster.withWorker(change) { try await body(cluster, nginx, folder) }
            }
            result = .success(())
        } catch { result = .failure(error) }
        await nginx.stop()
        await folder.remove()
        try result.get()
    }

    /// Submits a job and waits for its end.
    private static func job(
        _ cluster: WorkerFixture, _ nginx: Nginx, width: Int, _ fields: String = "", path: String = "rocket.jpg"
    ) async throws -> EventLog.Entry {
        let id = "\(path)-\(width)-\(Int.random(in: 0..<1_000_000_000))"
        try await cluster.submit(#"{"id":"\#(id)","source":"\#(nginx.url)/\#(path)","width":\#(width)\#(fields)}"#)
        return try await cluster.events.terminal(of: id)
    }

    @Test func rendersOtherSizesWithoutARequest() async throws {
        try await Self.withOrigin("add_header Cache-Control max-age=600;") { cluster, nginx, _ async throws in
            #expect(try await Self.job(cluster, nginx, width: 30).origin == "network")
            for width in 31...35 {
                let ready = try await Self.job(cluster, nginx, width: width)
                #expect(ready.origin == "source-cache" && ready.variant["width"] as? Int == width)
            }
            #expect(try await nginx.statuses(atLeast: 1) == ["200"])
        }
    }

    /// The signature of a URL changes with each job, and the image does not.
    @Test(arguments: [false, true]) func changingURLsShareSourceAndResult(hasRule: Bool) async throws {
        let photograph = try SampleImages.bytes()
        let origin = RawOrigin { _ in RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"]) }
        try await WorkerFixture.with { cluster in
            let rules = hasRule ? [SourceIdentityRule("127.0.0.1?Signature")].compactMap(\.self) : []
            try await cluster.withWorker({ $0.reader.identityRules = rules }) { () async throws in
                func job(_ id: String, signature: Int, width: Int, path: String = "/a") async throws -> String? {
                    let url = origin.url("\(path)?Signature=\(signature)")
                    let source = hasRule ? "\"\(url)\"" : #"{"url":"\#(url)","cacheKey":"\#(path)"}"#
                    try await cluster.submit(#"{"id":"\#(id)","source":\#(source),"width":\#(width)}"#)
                    return try await cluster.events.terminal(of: id).origin
                }
                #expect(try await job("first", signature: 1, width: 30) == "network")
                #expect(try await job("again", signature: 2, width: 30) == "memory")
                #expect(try await job("size", signature: 3, width: 31) == "source-cache")
                #expect(try await job("other", signature: 3, width: 30, path: "/b") == "network")
            }
        }
        // The origin gets the URL of the job.
        #expect(origin.requests.map { $0.head.split(separator: " ")[1] } == ["/a?Signature=1", "/b?Signature=3"])
        try await origin.stop()
    }

    @Test func staleSourceIsRevalidatedWithoutABody() async throws {
        try await Self.withOrigin("add_header Cache-Control max-age=0;") { cluster, nginx, folder async throws in
            #expect(try await Self.job(cluster, nginx, width: 30).origin == "network")
            #expect(try await Self.job(cluster, nginx, width: 31).origin == "source-cache")
            #expect(try await nginx.statuses(atLeast: 2) == ["200", "304"])
            let bytes = nginx.requests().compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
            #expect(bytes[0] > 10_000 && bytes[1] < 500)
            // The source has changed: another size, another ETag.
            folder.write(try SampleImages.bytes("coffee.jpg"), to: "rocket.jpg")
            let ready = try await Self.job(cluster, nginx, width: 32)
            #expect(ready.origin == "network")
            let source = ready.data["source"] as? [String: Any]
            #expect(source?["bytes"] as? Int == (try SampleImages.bytes("coffee.jpg").count))
            #expect(try await nginx.statuses(atLeast: 3) == ["200", "304", "200"])
        }
    }

    @Test func missingSourceIsRequestedOnce() async throws {
        try await Self.withOrigin("") { cluster, nginx, folder async throws in
            for width in 30...33 {
                let failed = try await Self.job(cluster, nginx, width: width, path: "none.jpg")
                #expect(failed.kind == "failed" && failed.data["code"] as? String == "not_found")
            }
            #expect(try await nginx.statuses(atLeast: 1) == ["404"])
        }
    }

    @Test func failedReloadKeepsTheCachedSource() async throws {
        try await Self.withOrigin("add_header Cache-Control max-age=600;") { cluster, nginx, _ async throws in
            #expect(try await Self.job(cluster, nginx, width: 30).origin == "network")
            await nginx.process.stop()
            let failed = try await Self.job(cluster, nginx, width: 31, #","cache":{"reload":true}"#)
            #expect(failed.kind == "failed" && failed.data["code"] as? String == "connect_error")
            #expect(try await Self.job(cluster, nginx, width: 32).origin == "source-cache")
        }
    }

    @Test func deletedSourceIsRemovedFromTheCache() async throws {
        try await Self.withOrigin("add_header Cache-Control max-age=0;") { cluster, nginx, folder async throws in
            #expect(try await Self.job(cluster, nginx, width: 30).origin == "network")
            #expect(rename("\(folder.path)/rocket.jpg", "\(folder.path)/gone.jpg") == 0)
            for width in 31...33 {
                let failed = try await Self.job(cluster, nginx, width: width)
                #expect(failed.kind == "failed" && failed.data["code"] as? String == "not_found")
            }
            #expect(try await nginx.statuses(atLeast: 2) == ["200", "404"])
        }
    }

    @Test func staleIfErrorServesDuringAnOriginOutage() async throws {
        try await Self.withOrigin("add_header Cache-Control \"max-age=0, stale-if-error=600\";") {
            cluster, nginx, _ async throws in
            #expect(try await Self.job(cluster, nginx, width: 30).origin == "network")
            await nginx.process.stop()
            #expect(try await Self.job(cluster, nginx, width: 31).origin == "source-cache")
        }
    }

    @Test func redisSourcesStayWithinTheirBudget() async throws {
        let size = try SampleImages.bytes().count
        try await Self.withOrigin("add_header Cache-Control max-age=600;") {
            $0.sourceTier.redisBudget = .bytes(size * 5 / 2)
        } _: { cluster, nginx, _ async throws in
            for name in ["a", "b", "c"] {
                #expect(try await Self.job(cluster, nginx, width: 30, path: "rocket.jpg?\(name)").origin == "network")
            }
            let gone = try await Self.job(cluster, nginx, width: 31, Self.onlyIfCached, path: "rocket.jpg?a")
            #expect(gone.code == "not_found")
            for name in ["b", "c"] {
                let path = "rocket.jpg?\(name)"
                #expect(
                    try await Self.job(cluster, nginx, width: 31, Self.onlyIfCached, path: path).origin
                        == "source-cache")
            }
            #expect(try await nginx.statuses(atLeast: 3) == ["200", "200", "200"])
        }
    }

    // MARK: cache.onlyIfCached

    private static let onlyIfCached = #","cache":{"onlyIfCached":true}"#

    @Test func onlyIfCachedUsesTheCachedSource() async throws {
        try await Self.withOrigin("add_header Cache-Control max-age=600;") { cluster, nginx, _ async throws in
            let miss = try await Self.job(cluster, nginx, width: 30, Self.onlyIfCached)
            #expect(miss.code == "not_found" && miss.message.contains("cache.onlyIfCached"))
            #expect(miss.data["retryable"] as? Bool == false)
            #expect(try await Self.job(cluster, nginx, width: 31).origin == "network")
            let made = try await Self.job(cluster, nginx, width: 32, Self.onlyIfCached)
            #expect(made.origin == "source-cache" && made.variant["width"] as? Int == 32)
            // The result is cached like any other.
            #expect(try await Self.job(cluster, nginx, width: 32, Self.onlyIfCached).origin == "memory")
            let past = #","cache":{"onlyIfCached":true,"source":false}"#
            #expect(try await Self.job(cluster, nginx, width: 32, past).origin == "memory")
            #expect(try await Self.job(cluster, nginx, width: 33, past).code == "not_found")
            let alone = #","cache":{"onlyIfCached":true,"memory":false}"#
            #expect(try await Self.job(cluster, nginx, width: 32, alone).origin == "source-cache")
            #expect(try await nginx.statuses(atLeast: 1) == ["200"])
            // Jobs with onlyIfCached publish no started event.
            #expect(cluster.events.all.count { $0.kind == "started" } == 1)
        }
    }

    /// The contents of the caches are unknown.
    @Test(arguments: [true, false]) func onlyIfCachedFailsTemporarilyWithoutRedis(memory: Bool) async throws {
        try await Self.withOrigin("add_header Cache-Control max-age=600;") {
            $0.leases.fallbackTimeout = .milliseconds(100)
        } _: { cluster, nginx, _ async throws in
            await cluster.redis.stop()
            let cache = #","cache":{"onlyIfCached":true,"memory":\#(memory)}"#
            let failed = try await Self.job(cluster, nginx, width: 30, cache)
            #expect(failed.code == "internal" && failed.data["retryable"] as? Bool == true, "\(failed.message)")
            #expect(nginx.requests().isEmpty)
        }
    }

    @Test func onlyIfCachedServesStaleWithoutRevalidation() async throws {
        let header = "add_header Cache-Control \"max-age=0, stale-while-revalidate=600\";"
        try await Self.withOrigin(header) { cluster, nginx, _ async throws in
            #expect(try await Self.job(cluster, nginx, width: 30).origin == "network")
            for width in 31...33 {
                #expect(try await Self.job(cluster, nginx, width: width, Self.onlyIfCached).origin == "source-cache")
            }
            // The next job starts the revalidation that none of them did.
            #expect(try await Self.job(cluster, nginx, width: 34).origin == "source-cache")
            #expect(try await nginx.statuses(atLeast: 2) == ["200", "304"])
        }
    }

    @Test(arguments: ["max-age=0", "max-age=0, stale-if-error=600", "no-store"])
    func onlyIfCachedMissesStaleAndUnstoredSources(control: String) async throws {
        try await Self.withOrigin("add_header Cache-Control \"\(control)\";") { cluster, nginx, _ async throws in
            #expect(try await Self.job(cluster, nginx, width: 30).origin == "network")
            #expect(try await Self.job(cluster, nginx, width: 31, Self.onlyIfCached).code == "not_found")
            #expect(try await nginx.statuses(atLeast: 1) == ["200"])
        }
    }

    @Test func onlyIfCachedIgnoresNegativeCacheEntries() async throws {
        try await Self.withOrigin("location = /busy.jpg { return 503; }") { cluster, nginx, _ async throws in
            #expect(try await Self.job(cluster, nginx, width: 30, path: "busy.jpg").code == "http_error")
            let miss = try await Self.job(cluster, nginx, width: 30, Self.onlyIfCached, path: "busy.jpg")
            #expect(miss.code == "not_found" && miss.data["retryable"] as? Bool == false)
            #expect(try await nginx.statuses(atLeast: 1) == ["503"])
        }
    }

    @Test func onlyIfCachedNeedsCachedWatermarks() async throws {
        try await Self.withOrigin("add_header Cache-Control max-age=600;") { cluster, nginx, folder async throws in
            folder.write(try SampleImages.bytes("coffee.jpg"), to: "mark.jpg")
            let mark =
                #","processors":[{"watermark":{"source":"\#(nginx.url)/mark.jpg","widthFraction":0.2}}]"#
            let drawn = #","processors":[{"watermark":{"source":"initials:JD","widthFraction":0.2}}]"#
            #expect(try await Self.job(cluster, nginx, width: 30).origin == "network")
            let miss = try await Self.job(cluster, nginx, width: 31, Self.onlyIfCached + mark)
            #expect(miss.code == "not_found" && miss.message.hasPrefix("the asset \(nginx.url)/mark.jpg: "))
            #expect(try await Self.job(cluster, nginx, width: 31, Self.onlyIfCached + drawn).origin == "source-cache")
            #expect(try await Self.job(cluster, nginx, width: 32, mark).origin == "source-cache")
            #expect(try await Self.job(cluster, nginx, width: 33, Self.onlyIfCached + mark).origin == "source-cache")
            #expect(try await nginx.statuses(atLeast: 2) == ["200", "200"])
        }
    }

    @Test func staleWhileRevalidateServesTheStaleSource() async throws {
        let header = "add_header Cache-Control \"max-age=0, stale-while-revalidate=600\";"
        try await Self.withOrigin(header) { cluster, nginx, _ async throws in
            #expect(try await Self.job(cluster, nginx, width: 30).origin == "network")
            #expect(try await Self.job(cluster, nginx, width: 31).origin == "source-cache")
            #expect(try await nginx.statuses(atLeast: 2) == ["200", "304"])
        }
    }

    @Test func noStoreAndPrivateSourcesAreFetchedEachTime() async throws {
        for header in ["no-store", "private"] {
            try await Self.withOrigin("add_header Cache-Control \"\(header)\"; etag off; if_modified_since off;") {
                cluster, nginx, _ async throws in
                for width in 30...32 { #expect(try await Self.job(cluster, nginx, width: width).origin == "network") }
                #expect(try await nginx.statuses(atLeast: 3) == ["200", "200", "200"])
            }
        }
    }

    @Test func diskCacheSurvivesRestartsAndRedisFlushes() async throws {
        let kept = TemporaryFolder("kept")
        let folder = TemporaryFolder("origin")
        folder.write(try SampleImages.bytes(), to: "rocket.jpg")
        let nginx = try await Nginx.start(serving: folder.path, "add_header Cache-Control max-age=600;")
        try await WorkerFixture.with { cluster in
            for (width, origin) in [(30, "network"), (31, "source-cache")] {
                try await cluster.withWorker({ $0.sourceTier.folder = kept.path }) { () async throws in
                    #expect(try await Self.job(cluster, nginx, width: width).origin == origin)
                }
                _ = try await cluster.client.send("FLUSHALL")
            }
        }
        #expect(try await nginx.statuses(atLeast: 1) == ["200"])
        await nginx.stop()
        await folder.remove()
        await kept.remove()
    }

    @Test func startFailsIfTheCacheFolderCannotBeCreated() async throws {
        let folder = TemporaryFolder("file")
        folder.write([1], to: "file")
        try await WorkerFixture.with { cluster in
            await #expect(throws: (any Error).self) {
                try await cluster.withWorker({ $0.sourceTier.folder = "\(folder.path)/file" }) {}
            }
        }
        await folder.remove()
    }
}
