import HalcyonImaging
import HalcyonModel
import HalcyonWorker
import TestSupport
import Testing
import Vips

/// Custom processors and sizers of the program that runs a worker.
@Suite(.limitedParallelism) struct ExtensionTests {
    private struct Invert: ImageProcessor {
        let name = "invert"

        func process(_ image: Image, parameters: String) throws -> Image {
            try Operation.call("invert", ["in": .image(image)]).image()
        }
    }

    /// A processor that stops its own operation.
    private struct Quitter: ImageProcessor {
        let name = "quit"

        func process(_ image: Image, parameters: String) throws -> Image {
            let cancellation = Cancellation()
            cancellation.cancel()
            return try image.inMemory(cancellation)
        }
    }

    /// A square whose side in pixels is the parameter `side`, of one digit.
    private struct Square: ImageSizer {
        let name = "square"

        func validate(_ parameters: String) throws(JobError) { _ = try side(parameters) }

        func plan(for size: PixelSize, parameters: String) throws(JobError) -> SizingPlan {
            let side = try side(parameters)
            return SizingPlan(scaling: size, to: PixelSize(width: side, height: side))
        }

        private func side(_ parameters: String) throws(JobError) -> Int {
            guard let match = parameters.wholeMatch(of: /{"side":([1-9])}/), let side = Int(match.1) else {
                throw JobError(.invalidJob, "expected side from 1 to 9")
            }
            return side
        }
    }

    @Test func jobsUseProcessorsAndSizersByName() async throws {
        let origin = try SampleImages.origin()
        let extensions = try Extensions(processors: [Invert()], sizers: [Square()])
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.extensions = extensions }) {
                let source = #""source":"\#(origin.url("/a"))","format":"png""#
                try await cluster.submit(
                    #"{"id":"a",\#(source),"sizer":{"square":{"side":7}},"variants":[{},{"processors":["invert"]}]}"#)
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready", "\(ready.message)")
                #expect(ready.variants.map { $0["width"] as? Int } == [7, 7])
                #expect(ready.variants.map { $0["height"] as? Int } == [7, 7])
                #expect(ready.variants[0]["sha256"] as? String != ready.variants[1]["sha256"] as? String)
                #expect(origin.requests.count == 1)
                for (id, fields, message) in [
                    ("none", #""processors":["inver"]"#, "did you mean invert?"),
                    ("bad", #""sizer":{"square":{"side":10}}"#, "square: expected side from 1 to 9"),
                    ("second", #""variants":[{},{"sizer":{"square":{}}}]"#, "variants[1]: square: expected side"),
                ] {
                    try await cluster.submit(#"{"id":"\#(id)",\#(source),\#(fields)}"#)
                    let failed = try await cluster.events.terminal(of: id)
                    #expect(failed.code == "invalid_job" && failed.message.contains(message), "\(failed.message)")
                }
                #expect(try await cluster.deadLetters(atLeast: 3).count == 3)
                #expect(origin.requests.count == 1)
            }
        }
        try await origin.stop()
    }

    /// Only the cancellation of a job makes it end without an event of its own.
    @Test func processorThatCancelsItselfFailsItsJob() async throws {
        let extensions = try Extensions(processors: [Quitter()])
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.extensions = extensions }) {
                try await cluster.submit(
                    #"{"id":"a","source":"initials:AB","width":9,"height":9,"processors":["quit"]}"#)
                let failed = try await cluster.events.terminal(of: "a")
                #expect(failed.code == "internal", "\(failed.message)")
            }
        }
    }
}
