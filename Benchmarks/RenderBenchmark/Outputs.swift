import HalcyonModel
import Measuring

extension RenderBenchmark {
    /// The photographs as they are, to 400×300: beside `vips_thumbnail` and beside the fast loop.
    static func comparePhotographs(_ files: [[UInt8]], on fixture: BenchmarkFixture) async throws {
        let variant = variant(400, 300, OutputOptions(format: .jpeg, quality: 80))
        let scores = try await takeTurns(
            [
                Contender { Work(bytes: PlainLoops.thumbnail(files)) },
                Contender { Work(bytes: PlainLoops.fast(files)) },
                Contender { try await fixture.render(files, [variant]) },
            ], budget: 5)
        for (name, score) in zip(["vips_thumbnail", "fast loop", "Halcyon"], scores) {
            let (cost, bytes) = (score.milliseconds / Double(files.count), score.outcome.bytes / files.count)
            say("\(name.column(15)) \(decimal(cost, 2).column(8, right: true)) ms CPU a picture  \(bytes) bytes")
        }
        say("of vips_thumbnail \(scores[2].ratio(to: scores[0])), of the fast loop \(scores[2].ratio(to: scores[1]))")
    }

    /// Sources of several kinds to outputs of several kinds, beside the fast loop with the same encoder and settings.
    static func compareOutputs(_ subjects: Subjects, on fixture: BenchmarkFixture) async throws {
        say("ms CPU a picture, bytes a picture; Halcyon's part of the fast loop: median of the rounds (quartiles)")
        let cases = [
            ("12 MP JPEG", subjects.large, 400, 300), ("12 MP JPEG", subjects.large, 1600, 1200),
            ("1 MP JPEG", subjects.small, 400, 300), ("1 MP PNG", subjects.smallPNG, 400, 300),
            ("1 MP WebP", subjects.smallWebP, 400, 300),
        ]
        for (name, files, width, height) in cases {
            for (options, suffix) in encodings {
                let output = PlainLoops.Output(width: width, height: height, suffix: suffix)
                let variant = variant(width, height, options)
                let scores = try await takeTurns(
                    [
                        Contender { Work(bytes: PlainLoops.fast(files, output)) },
                        Contender { try await fixture.render(files, [variant]) },
                    ], budget: 3)
                let costs = scores.map { decimal($0.milliseconds / Double(files.count), 2).column(8, right: true) }
                let bytes = scores.map { String($0.outcome.bytes / files.count).column(8, right: true) }
                let target = "\(width)×\(height) \(options.format?.rawValue ?? "")"
                say(
                    "\(name.column(11)) → \(target.column(14)) loop \(costs[0]) \(bytes[0])  Halcyon \(costs[1])"
                        + " \(bytes[1])  \(scores[1].ratio(to: scores[0]))")
            }
        }
    }

    static func variant(_ width: Int, _ height: Int, _ output: OutputOptions) -> Variant {
        Variant(sizing: Sizing(goal: .display(Display(width: Double(width), height: Double(height)))), output: output)
    }

    /// What the renderer does when a job names the format alone, and the same for libvips' savers.
    private static let encodings: [(OutputOptions, String)] = [
        (OutputOptions(format: .jpeg), ".jpg[Q=80,strip]"),
        (OutputOptions(format: .png), ".png[filter=all,compression=4,strip]"),
        (OutputOptions(format: .webp), ".webp[Q=80,effort=2,strip]"),
        (OutputOptions(format: .avif), ".avif[Q=50,effort=2,strip]"),
    ]
}
