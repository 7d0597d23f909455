import Foundation
import FoundationNetworking
import Subprocess
import TestSupport
import Testing

extension ClusterTests {
    /// A gateway that has reached its limit of open files.
    @Suite struct DescriptorTests {
        @Test func logsTheErrorAndRecoversWhenDescriptorsAreFree() async throws {
            let (port, folder) = (LoopbackPort.reserve(), TemporaryFolder("descriptors"))
            let gateway = try await ClusterFixture.current.startGateway(on: port, in: folder)
            let limit = try Self.descriptors(of: gateway) + 8
            let limiting = try await ChildProcess.start(
                "/usr/bin/prlimit", ["--pid", "\(gateway.pid)", "--nofile=\(limit):\(limit)"])
            #expect(await limiting.exit() == .code(0))
            let clients = try (0..<16).map { _ in try RawClient(port) }
            try await until("the error is logged") {
                String(decoding: folder.read("errors"), as: UTF8.self).contains("server cannot accept connections")
            }
            for client in clients { client.closeWriting() }
            let url = try #require(URL(string: "http://127.0.0.1:\(port)/healthz"))
            let (_, response) = try await URLSession.shared.data(from: url)
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            gateway.send(SIGTERM)
            #expect(await gateway.exit() == .code(0))
            await folder.remove()
        }

        private static func descriptors(of process: ChildProcess) throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.pid)/fd").count
        }
    }
}
