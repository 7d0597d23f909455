import Foundation
import Glibc
import Subprocess
import TestSupport
import Testing

/// The Java example on Apache Kafka, because version 4 of Apache's client does not work with the embedded broker.
@Suite(
    .limitedParallelism, .sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable),
    .enabled(
        if: FileManager.default.isExecutableFile(atPath: "/usr/bin/javac"),
        "there is no javac; make deps-test installs it"))
struct JavaExampleTests {
    /// Runs a command that writes `output` and `errors` to the folder, and waits for its exit.
    private func run(_ command: [String], in folder: TemporaryFolder) async throws -> ChildProcess.Exit {
        var options = ChildProcess.Options()
        options.environment = ["PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder.path, "TMPDIR": folder.path]
        let line = #"cd "$0" && exec "$@" >output 2>errors"#
        return try await ChildProcess.start("/bin/sh", ["-c", line, folder.path] + command, options: options).exit()
    }

    @Test func printsTheEventsOfItsJobUntilItEnds() async throws {
        let apache = try #require(SharedApacheKafka.current)
        let folder = TemporaryFolder("java")
        let brokers = apache.bootstrapServers
        let libraries = "\(try #require(ApacheKafka.home))/libs/*:\(folder.path)/*"
        let example = Repository.path("Examples/java/Example.java")
        #expect(try await run([Repository.path("clients/java/pack"), folder.path], in: folder) == .code(0))
        let redis = try await RedisServer.start()
        #expect(
            try await run([HalcyonExecutable.path, "topics", "create", "--brokers", brokers], in: folder) == .code(0))
        let worker = try await WorkerProcess.start(
            brokers: brokers, redisPort: redis.port,
            // The topics are those that the example names.
            [
                "HALCYON_RETRY_ATTEMPTS": "1",
                "HALCYON_KAFKA_GROUP": WorkerProcess.group(prefix: SharedApacheKafka.uniquePrefix()),
            ])
        for (source, code, type) in [("initials:JV", 0, "ready"), ("http://127.0.0.1:1/none.jpg", 1, "failed")] {
            let exit = try await run(["java", "-cp", libraries, example, brokers, source], in: folder)
            #expect(exit == .code(Int32(code)), "\(String(decoding: folder.read("errors"), as: UTF8.self))")
            let events = String(decoding: folder.read("output"), as: UTF8.self).split(separator: "\n")
            #expect(events.last?.contains(#""type":"halcyon.image.\#(type)""#) == true, "\(events)")
            #expect((1...2).contains(events.count))
        }
        worker.send(SIGTERM)
        await worker.exit()
        await redis.stop()
        await folder.remove()
    }
}
