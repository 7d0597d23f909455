import Concurrency
import Foundation
import Glibc
import HalcyonKit
import Subprocess
import TestSupport
import Testing

extension ClusterTests {
    /// A stream of events whose gateway dies, again and again.
    @Suite struct ResumeTests {
        private var cluster: ClientCluster { ClientCluster.current }

        @Test func nothingIsMissedAndNothingComesTwice() async throws {
            let port = LoopbackPort.free()
            var gateway = try await cluster.startGateway(on: port)
            let events = try await HalcyonClient(URL(string: "http://127.0.0.1:\(port)")!).events(
                EventStream.Filter(types: [.ready]))
            let seen = Lock<[String]>([])
            // Other tests of the cluster have jobs of their own at the same time.
            @Sendable func mine(_ jobs: [String]) -> [String] {
                let mine = Set(jobs)
                return seen.withLock { $0.filter(mine.contains) }
            }
            @Sendable func count(of jobs: [String]) -> Int { mine(jobs).count }
            let reader = Task {
                for try await message in events {
                    guard let event = message.event else { throw NotInTime(description: "a gap") }
                    seen.withLock { $0.append(event.job!.id) }
                }
            }
            var submitted: [String] = []
            for round in 0..<4 {
                // Before, while and after the gateway is away.
                submitted += try await submit(25)
                try await until("some of round \(round) is seen") { [submitted] in
                    count(of: submitted) > submitted.count - 20
                }
                kill(gateway.pid, SIGKILL)
                await gateway.exit()
                submitted += try await submit(25)
                gateway = try await cluster.startGateway(on: port)
            }
            submitted += try await submit(25)
            try await until("all are seen") { [submitted] in count(of: submitted) >= submitted.count }
            // What came twice would come before what comes now.
            let last = try await submit(1)
            try await until("the last is seen") { seen.withLock { $0.contains(last[0]) } }
            let expected = (submitted + last).sorted()
            #expect(mine(expected).sorted() == expected)
            reader.cancel()
            await #expect(throws: CancellationError.self) { try await reader.value }
            await gateway.stop()
        }

        /// So many jobs, by the cluster's own gateway; their ids.
        private func submit(_ count: Int) async throws -> [String] {
            let jobs = (0..<count).map { _ in ImageJob(.initials("R"), width: 8) }
            return try await cluster.client.submit(jobs).map { try $0.get().id }
        }
    }
}
