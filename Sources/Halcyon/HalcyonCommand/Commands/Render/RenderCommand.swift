import Formats
import HalcyonImaging
import HalcyonModel
import HalcyonSources
import HalcyonWire
import ProgramSettings
import Threads

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

/// What fetches and renders in this process, for one command.
struct LocalRendering: Sendable {
    /// What is rendered from.
    struct Fetched: Sendable {
        let source: LoadedSource
        let assets: [Source: [UInt8]]
    }

    private let configuration: Configuration
    private let pool: ThreadPool
    private let children: RenderChildren
    private let service: RenderService
    private let loader: SourceLoader

    /// It owns threads, children and connections: ``close()`` ends them.
    /// - Parameter threads: how many renderings it does at once.
    init(_ configuration: Configuration, threads: Int = 1) {
        self.configuration = configuration
        pool = Renderer.makePool(threads: threads)
        children = RenderChildren(configuration.options.renderChildren) { Console.complain("render child: \($0)") }
        service = RenderService(
            renderer: Renderer(limits: configuration.options.worker.images, extensions: configuration.extensions),
            pool: pool,
            children: children)
        loader = SourceLoader(configuration.sources, custom: configuration.providers, drawingOn: pool)
    }

    /// - Parameter file: what is read in place of the source.
    /// - Throws: ``Failure``, ``FileError``, `CancellationError`.
    func fetch(_ file: String?, _ request: SourceRequest, _ variants: [Variant]) async throws -> Fetched {
        let loaded: LoadedSource
        if let file {
            let bytes = try await Files.read(file, limit: configuration.sources.maximumBytes)
            loaded = LoadedSource(body: bytes, completedAt: Timestamp.now.seconds)
        } else {
            loaded = try await loader.fetch(request).loaded()
        }
        let shared = SharedSources(maximumBytes: 0, defaultLifetime: 0) { [loader] request, _ in
            try await loader.fetch(request).loaded()
        }
        let assets = Set(variants.flatMap(\.assets))
        return Fetched(source: loaded, assets: try await shared.load(all: assets, of: request.tenant))
    }

    /// - Throws: ``Failure``, `CancellationError`.
    func render(_ fetched: Fetched, _ variants: [Variant]) async throws -> Rendering {
        do {
            return try await service.render(fetched.source.body, variants, assets: fetched.assets)
        } catch let failure as Failure {
            throw failure.naming(Array(variants.indices), of: variants.count)
        }
    }

    func close() async {
        await loader.close()
        await blocking { [pool, children] in
            pool.shutdown()
            children.shutdown()
        }
    }
}
