import Formats
import Foundation
import HalcyonModel
import HalcyonResults
import Hashing
import Subprocess
import Telemetry
import TestSupport
import Testing

/// Commands that use the result store.
@Suite(.limitedParallelism) struct ResultStoreTests {
    @Test func getReadsEvictedResults() async throws {
        let (folder, server) = (TemporaryFolder("results"), try await RedisServer.start())
        var options = ResultStoreOptions(.folder("\(folder.path)/store"))
        options.readTimeout = .seconds(600)
        let store = try ResultStore.open(options, log: .silent, metrics: Metrics())
        let body = Array("picture".utf8)
        let key = "halcyon:{\(String(repeating: "0a", count: 16))}:\(String(repeating: "1b", count: 16))"
        let now = Timestamp.now.milliseconds
        try await store.ensure(
            StoredResult(
                key: try #require(ResultKey(key)), tenant: nil, body: body,
                metadata: ResultMetadata(
                    width: 4, height: 3, format: .png, bytes: body.count, sha256: SHA256.hash(body).description,
                    source: SourceMetadata(status: 200, etag: nil, bytes: 9, format: .jpeg, width: 40, height: 30)),
                expiresAt: now + 600_000, storedAt: now, rule: "0", fence: now * 1000, since: now * 1000),
            tags: [])
        await store.close(within: .seconds(60))
        let arguments = ["get", key, "-o", "\(folder.path)/a.png", "--redis", server.url]
        _ = try await Executable.run(arguments).expect(3)
        let setting = [
            "--set", "results.store=file://\(folder.path)/store", "--set", "results.store.readTimeout=60s",
        ]
        _ = try await Executable.run(arguments + setting).expect(0)
        #expect(folder.read("a.png") == body)
        await server.stop()
        await folder.remove()
    }

    @Test func doctorChecksTheStore() async throws {
        let folder = TemporaryFolder("results")
        folder.write([], to: "file")
        let unused = "127.0.0.1:\(LoopbackPort.reserve())"
        func finding(_ settings: String...) async throws -> [String: Any] {
            let run = try await Executable.run(
                ["doctor", "--json", "--brokers", unused, "--redis", "redis://\(unused)"]
                    + settings.flatMap { ["--set", $0] })
            let json = try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any]
            let findings = json?["findings"] as? [[String: Any]] ?? []
            return try #require(findings.first { $0["subject"] as? String == "store" })
        }
        let good = try await finding(
            "results.store=file://\(folder.path)/store", "results.store.readTimeout=60s")
        #expect(good["level"] as? String == "ok", "\(good)")
        #expect((good["message"] as? String)?.contains(" free") == true)
        let file = try await finding("results.store=file://\(folder.path)/file/store")
        #expect(file["level"] as? String == "broken" && file["remedy"] as? String != nil, "\(file)")
        let bucket = try await finding(
            "results.store=s3://bucket/prefix", "results.s3.endpoint=http://\(unused)",
            "results.store.writeTimeout=1s")
        #expect(bucket["level"] as? String == "broken", "\(bucket)")
        #expect((bucket["remedy"] as? String)?.contains("results.s3.endpoint") == true, "\(bucket)")
        await folder.remove()
    }
}
