import Glibc
import JSON
import Redis
import Subprocess
import TestSupport
import Testing

/// The log, retries and shutdown of `halcyon dev`.
@Suite(.limitedParallelism) struct DevLifecycleTests {
    @Test func submitReportsWhyAJobIsRetried() async throws {
        let (folder, waiting) = (TemporaryFolder("retrying"), TemporaryFolder("waiting"))
        // The first retry goes through a topic.
        let process = try await Executable.start(
            ["dev", "--json", "--set", "retry.maximumInProcessDelay=0"], in: folder)
        try await until("halcyon dev is ready") { folder.read("output").contains(UInt8(ascii: "\n")) }
        let kafka = try #require(JSON.parse(folder.read("output"), maximumSize: 1 << 16).at("kafka"))
        let source = "http://127.0.0.1:\(LoopbackPort.reserve())/a.jpg"
        let submit = try await Executable.start(
            ["submit", source, "--wait"], environment: ["HALCYON_KAFKA_BROKERS": kafka], in: waiting)
        try await until("submit reports the failed attempt") {
            let errors = Executable.text(waiting.read("errors"))
            return errors.contains("\(source): 1 attempt failed, the last with connect_error: ")
                && errors.contains("; retrying in ")
        }
        submit.send(SIGINT)
        #expect(await submit.exit() == .code(130))
        process.send(SIGINT)
        await process.exit()
        await folder.remove()
        await waiting.remove()
    }

    @Test func logsAnUnsupportedRequestVersion() async throws {
        let folder = TemporaryFolder("new-client")
        let process = try await Executable.start(["dev", "--json"], in: folder)
        try await until("halcyon dev is ready") { folder.read("output").contains(UInt8(ascii: "\n")) }
        let port = try #require(
            JSON.parse(folder.read("output"), maximumSize: 1 << 16).at("kafka")?.split(separator: ":").last)
        // A MetadataRequest of version 99, whose correlation id is 1 and whose client has no name.
        let request = #"\x00\x00\x00\x0b\x00\x03\x00\x63\x00\x00\x00\x01\xff\xff\x00"#
        let line = "exec 3<>/dev/tcp/127.0.0.1/\(port); printf '\(request)' >&3; read -t 10 <&3; true"
        _ = try await ChildProcess.start("/bin/bash", ["-c", line]).exit()
        try await until("the request is logged") {
            Executable.text(folder.read("errors")).contains(#""message":"embedded broker reported an error","reason":"#)
        }
        #expect(Executable.text(folder.read("errors")).contains("unsupported MetadataRequest"))
        process.send(SIGINT)
        await process.exit()
        await folder.remove()
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGKILL]) func leavesNoProcessesOrFilesBehind(signal: Int32) async throws {
        let cluster = try await DevClusterFixture.start()
        let redis = try await processID(ofRedisAt: cluster.redisPort)
        #expect(kill(redis, 0) == 0)

        try await cluster.run("submit", cluster.url("coffee.jpg"), "--width", "30", "--wait").expect(0)
        cluster.process.send(signal)
        #expect(await cluster.process.exit() == (signal == SIGKILL ? .signal(SIGKILL) : .code(0)))
        try await until("redis-server is gone") { kill(redis, 0) != 0 && errno == ESRCH }
        // A process that is killed removes nothing, and nothing else refers to this file.
        let environment = signal == SIGKILL ? ["dev.env"] : []
        #expect(entries(of: cluster.folder.path) == environment + ["errors", "output", "work"])
        #expect(entries(of: "\(cluster.folder.path)/work").isEmpty)
        await cluster.origin.stop()
        await cluster.folder.remove()
    }

    @Test func failsWithAnErrorWhenRedisCrashes() async throws {
        let cluster = try await DevClusterFixture.start()
        kill(try await processID(ofRedisAt: cluster.redisPort), SIGKILL)
        #expect(await cluster.process.exit() == .code(1))
        #expect(Executable.text(cluster.folder.read("errors")).contains("redis-server exited unexpectedly: signal 9"))
        await cluster.origin.stop()
        await cluster.folder.remove()
    }

    private func processID(ofRedisAt port: UInt16) async throws -> pid_t {
        let client = RedisClient(RedisEndpoint(loopbackPort: port), settings: .patient())
        let info = try await client.send("INFO", "server").string ?? ""
        await client.close()
        let line = try #require(info.split(whereSeparator: \.isNewline).first { $0.hasPrefix("process_id:") })
        return try #require(pid_t(line.dropFirst("process_id:".count)))
    }

    private func entries(of folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}
