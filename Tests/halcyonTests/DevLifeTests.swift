import Glibc
import Processes
import Redis
import TestSupport
import Testing

/// How `halcyon dev` ends.
@Suite struct DevLifeTests {
    @Test(arguments: [SIGINT, SIGTERM, SIGKILL]) func leavesNothingBehind(signal: Int32) async throws {
        let cluster = try await DevCluster.start()
        let client = RedisClient(RedisEndpoint(loopbackPort: cluster.redisPort))
        let info = try await client.send("INFO", "server").string ?? ""
        await client.close()
        let line = try #require(info.split(whereSeparator: \.isNewline).first { $0.hasPrefix("process_id:") })
        let redis = try #require(pid_t(line.dropFirst("process_id:".count)))
        #expect(kill(redis, 0) == 0)

        try await cluster.run("submit", cluster.url("coffee.jpg"), "--width", "30", "--wait").expect(0)
        cluster.process.send(signal)
        #expect(await cluster.process.exit() == (signal == SIGKILL ? .signal(SIGKILL) : .code(0)))
        try await until("redis-server is gone") { kill(redis, 0) != 0 && errno == ESRCH }
        #expect(entries(of: cluster.folder.path) == ["errors", "output", "work"])
        #expect(entries(of: "\(cluster.folder.path)/work").isEmpty)
        await cluster.origin.stop()
        await cluster.folder.remove()
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
