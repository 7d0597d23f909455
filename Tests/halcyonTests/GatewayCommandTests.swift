import Curl
import HalcyonCluster
import Kafka
import Subprocess
import TestSupport
import Testing

/// The process of `halcyon gateway`.
@Suite(.limitedParallelism) struct GatewayCommandTests {
    /// Whatever starts it again, such as systemd or Kubernetes, gives it a working producer.
    @Test func exitsIfItsProducerHasAFatalError() async throws {
        let (broker, redis) = (try MockCluster(), try await RedisServer.start())
        try await broker.createTopics(Topics().all, partitions: 1)
        let (port, folder) = (LoopbackPort.reserve(), TemporaryFolder("gateway"))
        let gateway = try await Executable.start(
            ["gateway"],
            environment: [
                "HALCYON_GATEWAY_LISTEN": "127.0.0.1:\(port)", "HALCYON_KAFKA_BROKERS": broker.bootstrapServers,
                "HALCYON_REDIS_URL": "redis://127.0.0.1:\(redis.port)?timeout=60s",
            ], in: folder)
        try await until("the gateway listens") { LoopbackPort.answers(port) }
        // 45 is OUT_OF_ORDER_SEQUENCE_NUMBER, to a produce request.
        broker.failRequests(0, with: [KafkaError.Code(rawValue: 45)])
        let client = CurlClient()
        var submission = HTTPRequest(.post, "http://127.0.0.1:\(port)/v1/jobs")
        submission.headers = ["Content-Type": "application/json"]
        submission.body = Array(#"{"source":"initials:A","width":8}"#.utf8)
        let status = try await client.execute(submission).status
        await client.close()
        #expect(status == 503)
        try await until("the gateway has exited") { !gateway.isRunning }
        #expect(await gateway.stop(grace: .zero) == .code(1))
        await folder.remove()
        await broker.stop()
        await redis.stop()
    }
}
