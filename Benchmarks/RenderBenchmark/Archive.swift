import HalcyonImaging
import HalcyonModel
import Measuring
import Vips

extension RenderBenchmark {
    /// What results cost that are rendered from the archive copy of a 24-megapixel source, beside those from the source
    /// itself, and how far their pixels are from each other: CIE L*a*b* (ΔE*ab), before encoding.
    static func compareArchive(_ photographs: [[UInt8]], on fixture: BenchmarkFixture) async throws {
        let archive = ArchiveOptions(minimumPixels: 8_000_000, pixels: 3_000_000)
        let widths = [200.0, 400, 800, 1200, 1600, 2000]
        say(
            "6000×4000, copy of \(archive.pixels) pixels: ms CPU from the source | from its copy: ratio, median (quartiles)"
        )
        say("distance from the pixels of the source: median, 99 %, largest")
        for (name, format, count) in [("JPEG", Format.jpeg, 6), ("PNG", .png, 2), ("WebP", .webp, 2)] {
            var totals: (whole: [Double], copy: [Double]) = ([], [])
            for index in 0..<min(count, photographs.count) {
                let source = try Subjects.collage([photographs[index]], 6000, 4000, across: 1)
                    .encoded(as: format, ["Q": 90].filter { _ in format != .png }, keeping: [])
                let start = processorTime()
                let copy = try await fixture.archive(source, archive)
                say(
                    "\(name) \(index + 1), \(source.count / 1000) kB: copy of \(copy.body.count / 1000) kB in "
                        + "\(decimal((processorTime() - start) * 1e3, 0)) ms")
                var sums: (whole: [Double], copy: [Double]) = ([], [])
                for width in widths {
                    let jpeg = width.variant(OutputOptions(format: .jpeg))
                    let scores = try await takeTurns(
                        [
                            Contender { try await fixture.render([source], [jpeg]) },
                            Contender { try await fixture.render(copy, [jpeg]) },
                        ], budget: 2)
                    let png = width.variant(OutputOptions(format: .png, effort: 0))
                    let distances = try distances(
                        try await fixture.render([source], [png]).images[0].body,
                        try await fixture.render(copy, [png]).images[0].body)
                    sums.whole.append(scores[0].milliseconds)
                    sums.copy.append(scores[1].milliseconds)
                    say(
                        "  \(Int(width))".column(8) + decimal(scores[0].milliseconds, 1).column(8, right: true) + " |"
                            + decimal(scores[1].milliseconds, 1).column(7, right: true)
                            + "  \(scores[1].ratio(to: scores[0]))  "
                            + [0.5, 0.99, 1].map { decimal(percentile(distances, $0), 2) }.joined(separator: " "))
                }
                say("  all sizes: \(decimal(sums.copy.reduce(0, +) / sums.whole.reduce(0, +), 3))")
                totals.whole += sums.whole
                totals.copy += sums.copy
            }
            say("\(name), all: \(decimal(totals.copy.reduce(0, +) / totals.whole.reduce(0, +), 3))")
        }
    }

    private static func distances(_ first: [UInt8], _ second: [UInt8]) throws -> [Double] {
        func lab(_ file: [UInt8]) throws -> Image {
            try Operation.call(
                "colourspace", ["in": .image(try EncodedImage(file).open().inMemory()), "space": "lab"]
            ).image()
        }
        let map = try Operation.call("dE76", ["left": .image(lab(first)), "right": .image(lab(second))]).image()
        return try map.pixels().withUnsafeBytes { $0.bindMemory(to: Float.self).map(Double.init) }
    }
}

extension Double {
    /// A variant of this width.
    fileprivate func variant(_ output: OutputOptions) -> Variant {
        Variant(sizing: Sizing(goal: .sizer(.aspectScaleDownByWidth(self))), output: output)
    }
}

/// An archive copy with its original.
struct Copy: Sendable {
    let body: [UInt8]
    let original: ArchivedOriginal
}

extension BenchmarkFixture {
    /// Makes the archive copy of a source.
    func archive(_ source: [UInt8], _ options: ArchiveOptions) async throws -> Copy {
        try await pool.run {
            let made = try renderer.render(renderer.plan(renderer.identify(source), [], archive: options))
            return Copy(
                body: made.images[0].body,
                original: ArchivedOriginal(
                    format: made.sourceFormat, size: made.sourceSize, bytes: source.count, sha256: ""))
        }
    }

    /// Renders variants from a copy.
    func render(_ copy: Copy, _ variants: [Variant]) async throws -> Work {
        let rendering = try await pool.run {
            try renderer.render(renderer.plan(renderer.identify(copy.body), variants, original: copy.original))
        }
        var work = Work()
        work.images = rendering.images
        return work
    }
}
