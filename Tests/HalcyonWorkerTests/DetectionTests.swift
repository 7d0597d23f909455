import Foundation
import HalcyonWorker
import Telemetry
import TestSupport
import Testing

/// Jobs that need a detector, with a complete worker.
@Suite(.limitedParallelism) struct DetectionTests {
    /// The command of a detector that finds two faces, in fractions of the picture of 512×512 pixels.
    /// - Parameter mode: The behavior of the detector.
    private static func command(_ mode: String) -> [String] {
        let script = Repository.path("Tests/Detectors/detector.py")
        let boxes = [(0.75, 0.5, 0.125, 0.25, 0.9), (0.25, 0.5, 0.125, 0.125, 0.4)].map {
            #"{"x":\#($0.0),"y":\#($0.1),"width":\#($0.2),"height":\#($0.3),"confidence":\#($0.4)}"#
        }
        return ["python3", script, mode, "[\(boxes.joined(separator: ","))]"]
    }

    /// Runs `body` beside a worker with a detector, and an origin of a portrait.
    private static func withDetector(
        _ command: [String], _ body: (WorkerFixture, RawOrigin, Metrics) async throws -> Void
    ) async throws {
        let portrait = try SampleImages.bytes("astronaut.jpg")
        let origin = RawOrigin { _ in RawOrigin.Step.response(portrait, ["Cache-Control: max-age=600"]) }
        let metrics = Metrics()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(metrics: metrics) {
                ($0.detector.command, $0.detector.timeLimit) = (command, .seconds(60))
            } _: { () async throws in
                try await body(cluster, origin, metrics)
            }
        }
        try await origin.stop()
    }

    private static func count(_ outcome: String, _ metrics: Metrics) -> Double {
        metrics.value(of: "halcyon_detections_total{outcome=\"\(outcome)\"}")
    }

    @Test func facesAreReportedKeptAndHidden() async throws {
        try await Self.withDetector(Self.command("boxes")) { cluster, origin, metrics in
            let variants = [
                #"{"name":"all","faces":true}"#,
                #"{"name":"card","width":128,"height":512,"gravity":"faces","faces":true}"#,
                #"{"name":"public","processors":["blurFaces"]}"#, #"{"name":"plain"}"#,
            ]
            let job = #"{"source":"\#(origin.url("/a"))","variants":[\#(variants.joined(separator: ","))],"id":"#
            try await cluster.submit(job + #""1"}"#)
            let event = try await cluster.events.terminal(of: "1")
            #expect(event.kind == "ready", "\(event.message)")
            func places(_ index: Int) -> [[Int]] {
                (event.variants[index]["faces"] as? [[String: Any]] ?? []).map { face in
                    ["x", "y", "width", "height"].map { face[$0] as? Int ?? -1 }
                }
            }
            #expect(places(0) == [[384, 256, 64, 128], [128, 256, 64, 64]])
            // The more confident and larger one, in the middle.
            #expect(places(1) == [[32, 256, 64, 128]])
            #expect(event.variants[2]["sha256"] as? String != event.variants[3]["sha256"] as? String)
            #expect(Self.count("found", metrics) == 1 && Self.count("failed", metrics) == 0)
            #expect(metrics.value(of: "halcyon_detection_duration_seconds_count") == 1)
            // From the result cache, the faces too.
            try await cluster.submit(job + #""2"}"#)
            let again = try await cluster.events.terminal(of: "2")
            #expect(again.origin == "memory" && again.variants[0]["faces"] != nil)
            #expect(Self.count("found", metrics) == 1)
        }
    }

    @Test(arguments: ["crash", nil]) func onlyJobsThatNeedAWorkingDetectorFail(_ mode: String?) async throws {
        try await Self.withDetector(mode.map(Self.command) ?? []) { cluster, origin, metrics in
            let jobs = [
                "keep": #""width":128,"height":512,"gravity":"faces""#, "hide": #""processors":["pixelateFaces"]"#,
                "report": #""faces":true"#, "plain": #""width":90"#,
            ]
            for (id, fields) in jobs {
                try await cluster.submit(#"{"id":"\#(id)","source":"\#(origin.url("/\(id)"))",\#(fields)}"#)
            }
            for id in ["keep", "plain"] { #expect(try await cluster.events.terminal(of: id).kind == "ready") }
            for id in ["hide", "report"] {
                let event = try await cluster.events.terminal(of: id)
                #expect(event.kind == "failed" && event.code == "internal")
                #expect(event.message.contains(mode == nil ? "set images.detector" : "signal 11"), "\(event.message)")
            }
            // Each crash is repeated once.
            #expect(Self.count("failed", metrics) == (mode == nil ? 0 : 6))
        }
    }
}
