import Arguments
import HalcyonImaging
import HalcyonModel
import HalcyonSources
import HalcyonWire

/// `halcyon render`: the fetch and the sizing of a job, here and now.
enum RenderCommand: Subcommand {
    private static let source = Parameter<String?>.optionalArgument(
        "SOURCE", .file,
        help: "A file of this machine, or - for standard input. \(SourceArgument.help).")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each image.")

    static let command = Command(
        "render", summary: "Fetch and size an image here and now, without Kafka and without Redis.",
        discussion: """
            What a worker would make of the same options, byte for byte, under the same limits. SOURCE may be the \
            path of any file that you may read, also as a file: URL, whatever sources.fileRoots says of those in jobs; a \
            text that has a scheme is a path only if a file of that name is there. URLs on this machine or in private networks are refused as workers refuse them: \
            --set sources.allow=127.0.0.1 allows one. Without --format the file takes the format that its name ends \
            in, which must be one that is written: .bmp is refused. A job with variants (--job) makes a file of each, in the folder that -o names.
            """, parameters: [source] + SizingOptions.all + [ImageOutput.option, json],
        examples: [
            .init("halcyon render cat.jpg --width 400 --height 300 -o small.webp", "A file of this machine."),
            .init("halcyon render https://example.org/cat.jpg --width 400 > cat.jpg", "An image from the web."),
            .init("halcyon render cat.png --crop-rect 0.5,0,0.5,1 --no-sizing -o right.png", "Its right half."),
            .init(
                "halcyon render cat.jpg --width 90 --height 90 --gravity attention --processor blackWhite "
                    + #"--processor '{"roundCorner":{"widthFraction":0.5}}' -o face.png"#,
                "A round grey portrait."),
            .init("halcyon render initials:JD --width 64 -o jd.png", "An avatar for somebody without a picture."),
            .init("halcyon render cat.jpg --job sizes.json -o images/", "All the variants of sizes.json."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        configuration.openFormats()
        let local: (path: String, source: String)? =
            if let text = arguments[source] { try await SourceArgument.localFile(text) } else { nil }
        let prepared = try await SingleJob.prepare(
            source: local?.source ?? arguments[source], arguments, configuration)
        var variants = prepared.job.variants
        let output = try ImageOutput(arguments, printsFacts: arguments[json], count: variants.count)
        guard !output.isNone || arguments[json] else {
            throw InputError("-o FILE is missing: an image is nothing for a terminal", of: arguments)
        }
        if variants.count == 1, variants[0].output.format == nil {
            variants[0].output.format = try output.format(arguments)
        }

        let clock = ContinuousClock()
        let start = clock.now
        let here = LocalRendering(configuration)
        let (fetched, rendering, fetch) = try await closing({ await here.close() }) { [variants] in
            let fetched = try await here.fetch(local?.path, prepared.job.request, variants)
            let fetch = clock.now - start
            return (fetched, try await here.render(fetched, variants), fetch)
        }
        let images = rendering.images.map { image in
            FileNames.Image(
                bytes: image.body, width: image.size.width, height: image.size.height, format: image.format)
        }
        let files = try await output.write(images, of: local?.path ?? prepared.job.source.text)
        if output.leavesStandardOutput {
            let report = RenderReport(
                rendering: rendering,
                keys: local?.path == "-"
                    ? nil
                    : variants.map { ResultKey(prepared.job.request, variant: $0) },
                files: files, sourceBytes: fetched.source.body.count, fetch: fetch, total: clock.now - start)
            report.print(asJSON: arguments[json])
        }
        return .done
    }
}
