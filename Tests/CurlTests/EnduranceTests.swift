import CLinux
import Curl
import Glibc
import TestSupport
import Testing

/// Memory and descriptors after thousands of requests, in a process of its own, where other tests are not counted.
@Suite(.limitedParallelism) struct EnduranceTests {
    @Test(arguments: ["keep-alive", "close"])
    func leaksNeitherMemoryNorDescriptors(connection: String) async {
        await #expect(processExitsWith: .success) { [connection = connection as String] in
            await recordingErrors {
                try await Self.exchange(over: connection)
            }
        }
    }

    private static func exchange(over connection: String) async throws {
        try await withOrigin(keepsLog: false) { _ in
            RawOrigin.answer("200 OK", ["Connection: \(connection)"], String(repeating: "x", count: 1000))
                + (connection == "close" ? [.close] : [])
        } _: { origin, client in
            func load(_ count: Int) async throws {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<20 {
                        group.addTask {
                            for _ in 0..<count / 20 { _ = try await client.execute(.patient(origin.url("/"))) }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            try await load(500)
            // Caches and pools may grow in one round, by an amount that depends on the schedule. A leak grows in each.
            var growth: [(bytes: Int, descriptors: Int)] = []
            repeat {
                let before = (memory: Int(mallinfo2().uordblks), descriptors: descriptors())
                try await load(3_000)
                growth.append((Int(mallinfo2().uordblks) - before.memory, descriptors() - before.descriptors))
            } while growth.count < 4 && (growth.last.map { $0.bytes >= 3_000 * 100 || $0.descriptors >= 300 } ?? true)
            let isStable = growth.contains { $0.bytes < 3_000 * 100 && $0.descriptors < 300 }
            #expect(isStable, "\(growth) more in each round of 3,000 requests")
        }
    }

    private static func descriptors() -> Int {
        guard let folder = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        return count
    }
}
