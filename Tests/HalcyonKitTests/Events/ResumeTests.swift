import Concurrency
import Foundation
import Glibc
import HalcyonKit
import Subprocess
import TestSupport
import Testing

extension ClusterTests {
    /// An event stream whose gateway crashes repeatedly.
    @Suite struct ResumeTests {
        private var cluster: ClusterFixture { ClusterFixture.current }

        @Test func deliversEachEventOnceAcrossGatewayCrashes() async throws {
            let port = LoopbackPort.reserve()
            var gateway = try await cluster.startGateway(on: port)
            let events = try await HalcyonClient(URL(string: "http://127.0.0.1:\(port)")!).events(
                EventStream.Filter(types: [.ready]))
            let seen = Lock<[(cursor: String, job: String)]>([])
            // Other tests use the same cluster at the same time.
            @Sendable func count(of jobs: [String]) -> Int {
                Set(jobs).intersection(seen.withLock { $0.map(\.job) }).count
            }
            let reader = Task {
                for try await message in events {
                    guard let job = message.event?.job else { throw ConditionTimeout(description: "a gap") }
                    seen.withLock { $0.append((message.cursor, job.id)) }
                }
            }
            var submitted: [String] = []
            for round in 0..<4 {
                // Before, during and after the outage of the gateway.
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
            try await until("all are seen") { [submitted] in count(of: submitted) == submitted.count }
            // Duplicates would arrive before the event of this job.
            let last = try await submit(1)
            try await until("the last is seen") { count(of: last) == 1 }
            // A job that is delivered again has another event.
            let cursors = seen.withLock { $0.map(\.cursor) }
            #expect(Set(cursors).count == cursors.count)
            reader.cancel()
            await #expect(throws: CancellationError.self) { try await reader.value }
            await gateway.stop()
        }

        /// Submits jobs through the cluster's own gateway and returns their ids.
        private func submit(_ count: Int) async throws -> [String] {
            let jobs = (0..<count).map { _ in ImageJob(.initials("R"), width: 8) }
            return try await cluster.client.submit(jobs).map { try $0.get().id }
        }
    }
}
