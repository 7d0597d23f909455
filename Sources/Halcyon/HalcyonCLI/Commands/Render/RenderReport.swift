import HalcyonImaging
import HalcyonModel
import JSON

/// The report on images that were rendered in this process.
struct RenderReport {
    let rendered: LocalRendering.RenderedJob
    /// The keys under which a worker would store the images, or nil for a source from standard input.
    let keys: [ResultKey]?
    /// The paths of the images, or nil for images that were not written to a file.
    let files: [String?]
    let total: Duration

    private var rendering: RenderResult { rendered.rendering }

    /// Prints one JSON object for each image, or a text line for each image and a line with the timings.
    func print(asJSON: Bool) {
        for (index, image) in rendering.images.enumerated() {
            if asJSON {
                Console.print(json: json(image, index))
            } else {
                Console.print(line(image, index))
            }
        }
        if !asJSON {
            Console.print(timings.map { "\($0) \(spanText(milliseconds: $1.milliseconds))" }.joined(separator: ", "))
        }
    }

    private var timings: [(String, Duration)] {
        [
            ("fetch", rendered.fetch), ("decode", rendering.timings.decode), ("process", rendering.timings.process),
            ("encode", rendering.timings.encode), ("total", total),
        ]
    }

    private func line(_ image: RenderedImage, _ index: Int) -> String {
        let (from, to) = (rendering.sourceSize, image.size)
        let palette = image.palette?.joined(separator: " ")
        let facts: [String?] = [
            byteText(image.body.count), image.frames.map { "\($0) frames" }, image.blurhash, image.dominantColor,
            palette,
            image.thumbhash, image.phash, image.faces?.summary, image.trim?.trimText, image.encoding?.summary,
            // With several images, the file name identifies each.
            rendering.images.count > 1 ? files[index].map { "in \($0)" } : nil,
        ]
        return """
            \(from.width)x\(from.height) \(rendering.sourceFormat.rawValue), \(byteText(rendered.sourceBytes))\
            \(rendering.sourceIsTruncated ? ", truncated" : "") \
            -> \(to.width)x\(to.height) \(image.format.rawValue), \(facts.compactMap(\.self).joined(separator: ", "))
            """
    }

    private func json(_ image: RenderedImage, _ index: Int) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("key", keys?[index].description)
            writer.member("width", image.size.width)
            writer.member("height", image.size.height)
            writer.member("format", image.format.rawValue)
            writer.member("bytes", image.body.count)
            writer.member("sha256", image.sha256)
            writer.member("frames", image.frames)
            writer.member("blurhash", image.blurhash)
            writer.member("dominantColor", image.dominantColor)
            writer.member("trim", image.trim)
            writer.member("palette", image.palette)
            writer.member("thumbhash", image.thumbhash)
            writer.member("phash", image.phash)
            writer.member("faces", image.faces)
            if image.format == .json {
                writer.name("info")
                writer.raw(image.body)
            }
            writer.member("encoding", image.encoding)
            writer.member("file", files[index])
            writer.member("alternative", rendered.alternative)
            writer.member("fallback", rendered.fallback?.code.rawValue)
            writer.name("source")
            writer.object { writer in
                writer.member("width", rendering.sourceSize.width)
                writer.member("height", rendering.sourceSize.height)
                writer.member("format", rendering.sourceFormat.rawValue)
                writer.member("bytes", rendered.sourceBytes)
                if rendering.sourceIsTruncated { writer.member("truncated", true) }
            }
            writer.name("timings")
            writer.object { writer in
                for (name, span) in timings { writer.member(name, (span.milliseconds * 1000).rounded() / 1000) }
            }
        }
    }
}
