import HalcyonModel
import Measuring

extension RenderBenchmark {
    /// Three variants of one source in one rendering, beside three renderings of one variant each.
    ///
    /// Decoding is shared, encoding cannot be: the ratio without encoding is printed too, and how much of the three single
    /// renderings encoding was.
    static func compareVariants(_ subjects: Subjects, on ground: Ground) async throws {
        say("three singles and three variants: ms CPU a source, ratio: median of the rounds (quartiles)")
        func widths(_ widths: [Double], _ format: ImageFormat?) -> [Variant] {
            widths.map {
                Variant(
                    sizing: Sizing(goal: .sizer(.aspectScaleDownByWidth($0))), output: OutputOptions(format: format))
            }
        }
        let formats = [ImageFormat.jpeg, .webp, .avif].map { variant(400, 300, OutputOptions(format: $0)) }
        let cases = [
            ("12 MP JPEG → 1600, 800, 400 jpeg", subjects.large, widths([1600, 800, 400], .jpeg)),
            ("12 MP JPEG → 1200, 600, 300 jpeg", subjects.large, widths([1200, 600, 300], .jpeg)),
            ("12 MP JPEG → 900, 600, 300 jpeg", subjects.large, widths([900, 600, 300], .jpeg)),
            ("12 MP JPEG → 1200, 600, 300 webp", subjects.large, widths([1200, 600, 300], .webp)),
            ("12 MP JPEG → 400 jpeg, webp, avif", subjects.large, formats),
            ("1 MP JPEG → 800, 400, 200 jpeg", subjects.small, widths([800, 400, 200], .jpeg)),
            ("4 MP PNG → 1200, 600, 300 jpeg", subjects.middlePNG, widths([1200, 600, 300], .jpeg)),
            ("4 MP PNG → 1200, 600, 300 png", subjects.middlePNG, widths([1200, 600, 300], nil)),
            ("4 MP WebP → 1200, 600, 300 jpeg", subjects.middleWebP, widths([1200, 600, 300], .jpeg)),
            ("4 MP WebP → 1200, 600, 300 webp", subjects.middleWebP, widths([1200, 600, 300], nil)),
        ]
        for (name, files, variants) in cases {
            let scores = try await takeTurns(
                [
                    Contender {
                        var work = Work()
                        for variant in variants { work.add(try await ground.render(files, [variant])) }
                        return work
                    },
                    Contender { try await ground.render(files, variants) },
                ], budget: 4)
            let costs = scores.map { decimal($0.milliseconds / Double(files.count), 1).column(7, right: true) }
            let (singles, together) = (scores[0].outcome, scores[1].outcome)
            let rest = (together.all - together.encoding) / (singles.all - singles.encoding)
            say(
                "\(name.column(34))\(costs[0])\(costs[1])  \(scores[1].ratio(to: scores[0]))"
                    + "  encoding was \(singles.encodingShare), the rest has ratio \(decimal(rest, 2))")
        }
    }
}

extension Work {
    fileprivate mutating func add(_ other: Work) {
        bytes += other.bytes
        all += other.all
        encoding += other.encoding
    }
}
