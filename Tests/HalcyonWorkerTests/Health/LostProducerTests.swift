import HalcyonWorker
import Kafka
import Telemetry
import TestSupport
import Testing
import Threads

/// A worker whose producer librdkafka has ended, because brokers forgot what they had acknowledged.
@Suite(.takesTurns) struct LostProducerTests {
    @Test func theWorkerEndsAndItsJobsAreAnothers() async throws {
        let (gate, photograph) = (Gate(), try Photograph.bytes())
        let origin = RawOrigin { _ in
            gate.pass()
            return RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"])
        }
        try await Stage.with { stage in
            guard case .mock(let mock) = stage.broker else { return }
            let reason = Lock<KafkaError?>(nil)
            let worker = try await Worker.start(
                stage.options, log: .silent, metrics: Metrics(), onEnd: { error in reason.withLock { $0 = error } })
            await worker.ready()
            try await stage.submit(#"{"id":"a","source":"\#(origin.url("/a"))","width":9,"height":9}"#)
            try await until("its fetch begins") { origin.requests.count == 1 }
            // 45 is OUT_OF_ORDER_SEQUENCE_NUMBER, to a produce request.
            mock.failRequests(0, with: [KafkaError.Code(rawValue: 45)])
            gate.open()
            try await until("it is told that it can do nothing more") { reason.withLock { $0 }?.isFatal == true }
            #expect(await worker.drain(grace: .seconds(5)) == 0)
            try await stage.withWorker {
                let event = try await stage.events.terminal(of: "a")
                #expect(event.kind == "ready")
            }
        }
        try await origin.stop()
    }
}
