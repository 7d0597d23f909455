import Concurrency
import Foundation
import FoundationNetworking
import Glibc
import Subprocess
import TestSupport
import Testing

extension ClusterTests {
    /// A gateway that crashes while a client waits for an image.
    @Suite(.extended) struct GatewayCrashTests {
        private var cluster: ClusterFixture { ClusterFixture.current }

        @Test func retryOnAnotherGatewayJoinsTheFetchInFlight() async throws {
            let photograph = try SampleImages.bytes()
            let gate = AsyncEvent()
            let origin = RawOrigin { _ in
                while !gate.isSignaled { usleep(5000) }
                return RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"])
            }
            let port = LoopbackPort.reserve()
            let gateway = try await cluster.startGateway(on: port)
            let path = "/v1/render?source=\(origin.url("/a"))&width=64&height=48"
            let first = Task { try await URLSession.shared.data(from: URL(string: "http://127.0.0.1:\(port)\(path)")!) }
            try await until("the source is being loaded") { origin.requests.count == 1 }
            kill(gateway.pid, SIGKILL)
            await gateway.exit()
            await #expect(throws: URLError.self) { try await first.value }

            let again = URL(string: cluster.gateway.absoluteString + path)!
            let second = Task { try await URLSession.shared.data(from: again) }
            // The retry joins the job in flight, which nothing has cancelled.
            gate.signal()
            let (body, response) = try await second.value
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            #expect((response as? HTTPURLResponse)?.mimeType?.hasPrefix("image/") == true && !body.isEmpty)
            #expect(origin.requests.count == 1 && origin.cuts == 0)
            try await origin.stop()
        }
    }
}
