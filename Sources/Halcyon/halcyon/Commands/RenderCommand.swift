import Arguments
import CivilTime
import Curl
import HalcyonImaging
import HalcyonModel
import HalcyonRendering
import HalcyonSources
import JSON
import Threads

/// `halcyon render`: the fetch and the sizing of a job, here and now.
enum RenderCommand: Subcommand {
    private static let source = Parameter<String?>.optionalArgument(
        "SOURCE", .file, help: "The URL of an image, a file of this machine, or - for standard input.")
    private static let json = Parameter.flag("json", help: "Print one JSON object.")

    static let command = Command(
        "render", summary: "Fetch and size an image here and now, without Kafka and without Redis.",
        discussion: """
            What a worker would make of the same options, byte for byte, under the same limits. SOURCE may be a file \
            here too, which a job's cannot. URLs on this machine or in private networks are refused as workers refuse \
            them: --set sources.allow=127.0.0.1 allows one. Without --format the file takes the format that its name \
            ends in.
            """, parameters: [source] + SizingOptions.all + [ImageOutput.option, json],
        examples: [
            .init("halcyon render cat.jpg --width 400 --height 300 -o small.webp", "A file of this machine."),
            .init("halcyon render https://example.org/cat.jpg --width 400 > cat.jpg", "An image from the web."),
            .init("halcyon render cat.png --crop-rect 0.5,0,0.5,1 --no-sizing -o right.png", "Its right half."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let output = ImageOutput(arguments, printsFacts: arguments[json])
        guard !output.isNone || arguments[json] else {
            throw InputError("-o FILE is missing: an image is nothing for a terminal", of: arguments)
        }
        let file = arguments[source].flatMap { $0.contains("://") ? nil : $0 }
        let prepared = try await SingleJob.prepare(
            source: file == nil ? arguments[source] : localSource, arguments, configuration)
        var variant = prepared.job.variant
        variant.output.format = variant.output.format ?? format(of: output.path)

        let clock = ContinuousClock()
        let start = clock.now
        let loaded = try await load(file, prepared.job.source, configuration)
        let fetched = clock.now
        let image = try await render(loaded.body, variant, configuration)
        try await output.write(image.body)
        if output.leavesStandardOutput {
            report(
                image, loaded, in: output.path, fetch: fetched - start, total: clock.now - start,
                asJSON: arguments[json])
        }
        return .done
    }

    /// Stands for a file: the reader of jobs takes only sources that workers serve, and here it is asked for the sizing
    /// alone.
    private static let localSource = "http://localhost/"

    private static func format(of path: String?) -> ImageFormat? {
        guard let ending = path?.split(separator: ".").last?.lowercased() else { return nil }
        return ImageFormat.writable.first { ending == $0.rawValue || ending == $0.fileExtension }
    }

    private static func load(_ file: String?, _ source: Source, _ configuration: Configuration) async throws
        -> LoadedSource
    {
        if let file {
            let bytes = try await Files.read(file, limit: configuration.sources.maximumBytes)
            return LoadedSource(body: bytes, completedAt: Timestamp.now.seconds)
        }
        let loader = SourceLoader(configuration.sources)
        let result: Result<LoadedSource, any Error>
        do { result = .success(try await loader.load(source)) } catch { result = .failure(error) }
        await loader.close()
        return try result.get()
    }

    private static func render(
        _ bytes: [UInt8], _ variant: Variant, _ configuration: Configuration
    ) async throws -> RenderedImage {
        let pool = Renderer.makePool(threads: 1)
        let children = RenderChildren(configuration.renderChildren) { Console.complain("render child: \($0)") }
        let service = RenderService(
            renderer: Renderer(limits: configuration.images), pool: pool, children: children)
        let result: Result<RenderedImage, any Error>
        do {
            result = .success(try await service.render(bytes, [variant])[0])
        } catch {
            result = .failure(error)
        }
        await blocking {
            pool.shutdown()
            children.shutdown()
        }
        return try result.get()
    }

    private static func report(
        _ image: RenderedImage, _ loaded: LoadedSource, in file: String?, fetch: Duration, total: Duration, asJSON: Bool
    ) {
        let timings = [
            ("fetch", fetch), ("decode", image.timings.decode), ("process", image.timings.process),
            ("encode", image.timings.encode), ("total", total),
        ]
        if asJSON {
            var writer = JSONWriter()
            writer.object { writer in
                writer.member("width", image.size.width)
                writer.member("height", image.size.height)
                writer.member("format", image.format.rawValue)
                writer.member("bytes", image.body.count)
                writer.member("sha256", image.sha256)
                writer.member("file", file)
                writer.name("source")
                writer.object { writer in
                    writer.member("width", image.sourceSize.width)
                    writer.member("height", image.sourceSize.height)
                    writer.member("format", image.sourceFormat.rawValue)
                    writer.member("bytes", loaded.body.count)
                }
                writer.name("timings")
                writer.object { writer in
                    for (name, span) in timings { writer.member(name, (span.milliseconds * 1000).rounded() / 1000) }
                }
            }
            Console.print(json: writer.bytes)
            return
        }
        let (from, to) = (image.sourceSize, image.size)
        Console.print(
            """
            \(from.width)x\(from.height) \(image.sourceFormat.rawValue), \(byteText(loaded.body.count)) \
            -> \(to.width)x\(to.height) \(image.format.rawValue), \(byteText(image.body.count))
            """)
        Console.print(timings.map { "\($0) \(spanText(milliseconds: $1.milliseconds))" }.joined(separator: ", "))
    }
}
