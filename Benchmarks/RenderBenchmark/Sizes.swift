import HalcyonImaging
import HalcyonModel
import Measuring
import Vips

extension RenderBenchmark {
    /// What searches for a quality, a format and a number of bytes cost and save: about 100 pictures of 800×600, three
    /// parts of each photograph, beside fixed settings and beside the autoquality of imgproxy.
    static func compareSizes(_ photographs: [[UInt8]], on fixture: BenchmarkFixture) async throws {
        let parts = [
            CropRect.whole, CropRect(x: 0, y: 0, width: 0.6, height: 0.6),
            CropRect(x: 0.4, y: 0.4, width: 0.6, height: 0.6),
        ]
        let pictures = photographs.count * parts.count
        // The pictures before encoding, from which similarity is measured, with a measure other than that of the searches.
        let originals = try await fixture.render(
            photographs, parts.map { part($0, OutputOptions(format: .png, effort: 0)) }
        )
        .images.map { try brightness(of: EncodedImage($0.body).open()) }
        say(
            "\(pictures) pictures of 800×600: ms CPU and encodings a picture, bytes, of JPEG 80, SSIM (8×8 windows): mean, lowest of 20"
        )
        var fixed = 0
        func report(_ name: String, _ seconds: Double, _ encodings: Int, _ files: [[UInt8]]) throws {
            let bytes = files.reduce(0) { $0 + $1.count }
            if fixed == 0 { fixed = bytes }
            let alike = try zip(files, originals).map { file, original in
                structuralSimilarity(try brightness(of: EncodedImage(file).open()), original)
            }.sorted()
            say(
                name.column(34) + decimal(seconds * 1000 / Double(pictures), 1).column(9, right: true)
                    + decimal(Double(encodings) / Double(pictures), 1).column(6, right: true)
                    + String(bytes / pictures).column(9, right: true)
                    + decimal(Double(bytes) / Double(fixed), 3).column(8, right: true)
                    + decimal(alike.reduce(0, +) / Double(alike.count), 4).column(9, right: true)
                    + decimal(alike[alike.count / 20], 4).column(9, right: true))
        }
        func render(_ settings: [(String, OutputOptions)]) async throws {
            for (name, output) in settings {
                let start = processorTime()
                let work = try await fixture.render(photographs, parts.map { part($0, output) })
                let seconds = processorTime() - start
                let encodings = work.images.reduce(0) { $0 + ($1.encoding?.encodings ?? 1) }
                try report(name, seconds, encodings, work.images.map(\.body))
                let formats = Dictionary(grouping: work.images, by: \.format.rawValue).mapValues(\.count)
                if formats.count > 1 {
                    say(
                        "  "
                            + formats.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
                    )
                }
            }
        }
        try await render(fixedSettings)
        let sources = try await fixture.render(
            photographs, parts.map { part($0, OutputOptions(format: .png, effort: 0)) }
        ).images
        var (files, encodings): ([[UInt8]], Int) = ([], 0)
        let start = processorTime()
        for (source, original) in zip(sources, originals) {
            let image = try EncodedImage(source.body).open().inMemory()
            let found = try autoquality(image, original)
            files.append(found.file)
            encodings += found.encodings
        }
        try report("imgproxy's autoquality (JPEG)", processorTime() - start, encodings, files)
        try await render(searches)
    }

    private static func part(_ crop: CropRect, _ output: OutputOptions) -> Variant {
        var variant = variant(800, 600, output)
        variant.sizing.cropRect = crop
        return variant
    }

    /// The search that imgproxy documents for the method `dssim` with its defaults: a quality from 70 to 80 with a DSSIM
    /// of 0.02, by bisection, that ends within 0.001 of it (https://docs.imgproxy.net/autoquality).
    /// Its own program is not part of the comparison, so that only bytes and similarity can be compared, not CPU time.
    private static func autoquality(_ image: Image, _ original: [UInt8]) throws -> (file: [UInt8], encodings: Int) {
        var (low, high, encodings) = (70, 80, 0)
        var file: [UInt8] = []
        while low <= high {
            let quality = (low + high) / 2
            file = try image.encoded(as: .jpeg, ["Q": .int(quality)], keeping: [])
            encodings += 1
            let dissimilarity = (1 - structuralSimilarity(try brightness(of: EncodedImage(file).open()), original)) / 2
            if abs(dissimilarity - 0.02) <= 0.001 { break }
            if dissimilarity > 0.02 { low = quality + 1 } else { high = quality - 1 }
        }
        return (file, encodings)
    }

    private static let fixedSettings: [(String, OutputOptions)] = [
        ("JPEG 80", OutputOptions(format: .jpeg)),
        ("WebP 80", OutputOptions(format: .webp)),
        ("AVIF 50", OutputOptions(format: .avif)),
    ]

    private static let searches: [(String, OutputOptions)] = [
        ("JPEG, target 0.98", OutputOptions(format: .jpeg, similarity: 0.98)),
        ("JPEG, target 0.96", OutputOptions(format: .jpeg, similarity: 0.96)),
        ("WebP, target 0.98", OutputOptions(format: .webp, similarity: 0.98)),
        ("best, target 0.98", OutputOptions(choosesFormat: true)),
        ("JPEG, at most 60 kB", OutputOptions(format: .jpeg, maximumBytes: 60_000)),
        ("WebP, at most 40 kB, resizing", OutputOptions(format: .webp, maximumBytes: 40_000, allowsResizing: true)),
        ("JPEG, at most 20 kB, resizing", OutputOptions(format: .jpeg, maximumBytes: 20_000, allowsResizing: true)),
    ]
}
