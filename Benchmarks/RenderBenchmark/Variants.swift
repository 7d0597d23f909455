import HalcyonModel
import Measuring
import Vips

extension RenderBenchmark {
    /// Three variants of one source in one rendering, beside three renderings of one variant each.
    ///
    /// What can be reached is said too: the most expensive of the three must be made in any case, and the files of the other
    /// two encoded. And where the time of the three in one went: decoding, measured alone; encoding, by the renderer's own
    /// clock; all the rest, which is mostly resizing.
    static func compareVariants(_ subjects: Subjects, on fixture: BenchmarkFixture) async throws {
        say("ms CPU a source: three singles | three in one: decoding, resizing, encoding")
        say(
            "ratio: median of the rounds (quartiles); floor: the dearest single of the sum, and with the others' encoding"
        )
        for shape in cases(subjects) {
            let (files, count) = (shape.files, shape.variants.count)
            let scores = try await takeTurns(
                shape.variants.map { variant in Contender { try await fixture.render(files, [variant]) } }
                    + [
                        Contender { try await fixture.render(files, shape.variants) },
                        Contender { try await fixture.decode(files, shape.load) },
                    ], budget: 4)
            let (singles, together, decoding) = (scores[..<count], scores[count], scores[count + 1])
            let sums = together.seconds.indices.map { round in singles.reduce(0) { $0 + $1.seconds[round] } }
            let dearest = singles.max { $0.milliseconds < $1.milliseconds } ?? together
            let sum = singles.reduce(0) { $0 + $1.milliseconds }
            let encoding = singles.reduce(0) { $0 + $1.encoding } - dearest.encoding
            let floors = [dearest.milliseconds, dearest.milliseconds + encoding].map { decimal($0 / sum, 2) }
            func cost(_ milliseconds: Double) -> String {
                decimal(max(0, milliseconds) / Double(files.count), 1).column(7, right: true)
            }
            let rest = together.milliseconds - decoding.milliseconds - together.encoding
            say(
                shape.name.column(34) + singles.map { cost($0.milliseconds) }.joined()
                    + " |\(cost(together.milliseconds)):\(cost(decoding.milliseconds))\(cost(rest))\(cost(together.encoding))"
                    + "  ratio \(quotient(together.seconds, sums))  floor \(floors[0]) \(floors[1])")
        }
    }

    /// A source, what is made of it, and how a rendering of all of that opens it.
    private struct Case {
        let name: String
        let files: [[UInt8]]
        let load: Load
        let variants: [Variant]
    }

    private static func cases(_ subjects: Subjects) -> [Case] {
        func widths(_ widths: [Double], _ format: ImageFormat?) -> [Variant] {
            widths.map {
                Variant(
                    sizing: Sizing(goal: .sizer(.aspectScaleDownByWidth($0))), output: OutputOptions(format: format))
            }
        }
        let formats = [ImageFormat.jpeg, .webp, .avif].map { variant(400, 300, OutputOptions(format: $0)) }
        let all: [(String, [[UInt8]], Load, [Variant])] = [
            ("12 MP JPEG → 1600, 800, 400 jpeg", subjects.large, .shrink(2), widths([1600, 800, 400], .jpeg)),
            ("12 MP JPEG → 1200, 600, 300 jpeg", subjects.large, .shrink(2), widths([1200, 600, 300], .jpeg)),
            ("12 MP JPEG → 900, 600, 300 jpeg", subjects.large, .shrink(4), widths([900, 600, 300], .jpeg)),
            ("12 MP JPEG → 1200, 600, 300 webp", subjects.large, .shrink(2), widths([1200, 600, 300], .webp)),
            ("12 MP JPEG → 400 jpeg, webp, avif", subjects.large, .shrink(8), formats),
            ("1 MP JPEG → 800, 400, 200 jpeg", subjects.small, .whole, widths([800, 400, 200], .jpeg)),
            ("4 MP PNG → 1200, 600, 300 jpeg", subjects.middlePNG, .whole, widths([1200, 600, 300], .jpeg)),
            ("4 MP PNG → 1200, 600, 300 png", subjects.middlePNG, .whole, widths([1200, 600, 300], nil)),
            (
                "4 MP WebP → 1200, 600, 300 jpeg", subjects.middleWebP, .scale(1200 / 2304.0),
                widths([1200, 600, 300], .jpeg)
            ),
            (
                "4 MP WebP → 1200, 600, 300 webp", subjects.middleWebP, .scale(1200 / 2304.0),
                widths([1200, 600, 300], nil)
            ),
        ]
        return all.map { Case(name: $0.0, files: $0.1, load: $0.2, variants: $0.3) }
    }
}

/// How a decoder opens a file.
private enum Load {
    case whole
    case shrink(Int)
    case scale(Double)

    var options: Operation.Arguments {
        switch self {
        case .whole: ["access": "sequential"]
        case .shrink(let factor): ["access": "sequential", "shrink": .int(factor)]
        case .scale(let factor): ["access": "sequential", "scale": .double(factor)]
        }
    }
}

extension BenchmarkFixture {
    /// Decodes each file into memory, as a rendering of several variants does first.
    fileprivate func decode(_ files: [[UInt8]], _ load: Load) async throws -> Work {
        try await pool.run {
            for file in files {
                _ = try EncodedImage(file).open(load.options).inMemory()
            }
            return Work()
        }
    }
}

extension Score where Outcome == Work {
    /// Milliseconds of CPU that encoding took, by its share of the renderer's time.
    fileprivate var encoding: Double { outcome.all > .zero ? milliseconds * (outcome.encoding / outcome.all) : 0 }
}
