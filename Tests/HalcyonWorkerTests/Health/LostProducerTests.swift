import Concurrency
import HalcyonWorker
import Kafka
import Telemetry
import TestSupport
import Testing

/// A worker whose producer has a fatal error, because the brokers have lost acknowledged records.
@Suite(.limitedParallelism) struct LostProducerTests {
    @Test func workerStopsAndItsJobsAreRedelivered() async throws {
        let (gate, photograph) = (Latch(), try SampleImages.bytes())
        let origin = RawOrigin { _ in
            gate.wait()
            return RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"])
        }
        try await WorkerFixture.with { cluster in
            guard case .mock(let mock) = cluster.broker else { return }
            let reason = Lock<KafkaError?>(nil)
            let worker = try await Worker.start(
                cluster.options, log: .silent, metrics: Metrics(), onEnd: { error in reason.withLock { $0 = error } })
            await worker.ready()
            try await cluster.submit(#"{"id":"a","source":"\#(origin.url("/a"))","width":9,"height":9}"#)
            try await until("its fetch begins") { origin.requests.count == 1 }
            // 45 is OUT_OF_ORDER_SEQUENCE_NUMBER, to a produce request.
            mock.failRequests(0, with: [KafkaError.Code(rawValue: 45)])
            gate.open()
            try await until("the worker reports a fatal error") { reason.withLock { $0 }?.isFatal == true }
            #expect(await worker.shutdown(gracePeriod: .seconds(600)) == 0)
            try await cluster.withWorker {
                let event = try await cluster.events.terminal(of: "a")
                #expect(event.kind == "ready")
            }
        }
        try await origin.stop()
    }
}
