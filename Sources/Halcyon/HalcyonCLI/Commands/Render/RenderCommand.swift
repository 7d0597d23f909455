import Concurrency
import Formats
import HalcyonCoding
import HalcyonImaging
import HalcyonModel
import HalcyonSources
import JSON
import ProgramSettings

/// `halcyon render`: fetches and sizes an image in this process.
enum RenderCommand: Subcommand {
    private static let source = Parameter<String?>.optionalArgument(
        "SOURCE", .file,
        help: "A local file, or - for standard input. Otherwise: \(SourceArgument.help).")
    private static let json = Parameter.flag("json", help: "Print one JSON object for each image.")

    static let command = Command(
        "render", summary: "Fetch and size an image locally, without Kafka or Redis.",
        discussion: """
            The output is identical to that of a worker with the same options and limits. SOURCE can be the path or \
            the file: URL of any readable file, regardless of sources.fileRoots. Text with a URL scheme is a path only \
            if such a file exists.

            URLs on this machine and in private networks are rejected, as workers do; --set sources.allow=127.0.0.1 \
            allows one. Without --format the extension of the file selects the format, and unknown extensions such as \
            .bmp are rejected. A job with variants (--job) writes one file for each, to the folder given by -o.

            The alternatives and the fallback picture of a job are used as by a worker that makes one attempt. \
            Variants that fail in a job with partial are reported on standard error, and the others are written.
            """, parameters: [source, SizingOptions.job, ImageOutput.option, json],
        groups: SizingOptions.groups.options, brief: SizingOptions.brief,
        examples: [
            .init(
                "halcyon render cat.jpg --width 400 --height 300 -o small.webp",
                "Resize a local file and convert it to WebP."),
            .init("halcyon render https://example.org/cat.jpg --width 400 > cat.jpg", "Resize an image from the web."),
            .init("halcyon render cat.png --crop-rect 0.5,0,0.5,1 --no-sizing -o right.png", "Cut out the right half."),
            .init(
                "halcyon render cat.jpg --width 90 --height 90 --gravity attention --processor blackWhite "
                    + #"--processor '{"roundCorner":{"widthFraction":0.5}}' -o face.png"#,
                "Make a round, gray portrait."),
            .init("halcyon render initials:JD --width 64 -o jd.png", "Draw an avatar with initials."),
            .init("halcyon render cat.jpg --job sizes.json -o images/", "Render all variants of sizes.json."),
        ])

    static let connection = Connection.redis

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        try configuration.prepareImaging()
        let local: (path: String, source: String)? =
            if let text = arguments[source] { try await SourceArgument.localFile(text) } else { nil }
        let prepared = try await SingleJob.prepare(
            source: local?.source ?? arguments[source], arguments, configuration)
        var job = prepared.job
        let output = try ImageOutput(arguments, printsFacts: arguments[json], count: job.variants.count)
        guard !output.isNone || arguments[json] else {
            throw InputError("refusing to write an image to the terminal; use -o FILE", of: arguments)
        }
        if job.variants.count == 1, job.variants[0].info == nil, job.variants[0].output.hasAutomaticFormat {
            job.variants[0].output.format = try output.format(arguments)
        }

        let clock = ContinuousClock()
        let start = clock.now
        let here = LocalRendering(configuration)
        let rendered = try await closing({ await here.close() }) { [job] in
            try await here.render(job, reading: local?.path)
        }
        complain(of: rendered)
        let images = rendered.rendering.images.map { image in
            FileNames.Image(
                bytes: image.body, width: image.size.width, height: image.size.height, format: image.format)
        }
        let files = try await output.write(images, of: local?.path ?? job.source.text)
        if output.leavesStandardOutput {
            let isFromInput = local?.path == "-" && rendered.alternative == nil && rendered.fallback == nil
            let keys = rendered.variants.map { ResultKey(rendered.job.request, variant: rendered.job.variants[$0]) }
            let report = RenderReport(
                rendered: rendered, keys: isFromInput ? nil : keys, files: files, total: clock.now - start)
            report.print(asJSON: arguments[json])
        }
        return .done
    }

    /// Reports another source than that of the job, and variants that failed.
    private static func complain(of rendered: LocalRendering.RenderedJob) {
        if let alternative = rendered.alternative {
            Console.complain("the source failed; rendered the alternative source \(alternative)")
        }
        if let failure = rendered.fallback { Console.complain("\(failure); rendered the fallback picture") }
        for failure in rendered.failures { Console.complain("\(failure)") }
    }
}

/// `halcyon info`: reads facts about a source in this process.
enum InfoCommand: Subcommand {
    private static let source = Parameter<String>.argument(
        "SOURCE", .file, help: "A local file, or - for standard input. Otherwise: \(SourceArgument.help).")
    private static let json = Parameter.flag("json", help: "Print the facts as one JSON object.")

    static let command = Command(
        "info", summary: "Print facts about an image from its header, without Kafka or Redis.",
        discussion: """
            Prints the format, size, color space, frames, profile and camera of an image without decoding its pixels. \
            Only the analyses, such as --palette, decode them. The location is printed with --location only. \
            Jobs with `info` and the gateway's /v1/info return the same JSON as --json. See docs/info.md.
            """, parameters: [source, json], groups: [OptionGroup("Facts", SizingOptions.facts.map(\.parameter))],
        examples: [
            .init("halcyon info cat.jpg", "Print the facts about a local file."),
            .init("halcyon info https://example.org/cat.jpg --json --phash", "Print them as JSON with a hash."),
        ])

    static let connection = Connection.none

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        try configuration.prepareImaging()
        let local = try await SourceArgument.localFile(arguments[source])
        var draft = try SizingOptions.facts.draft(from: arguments)
        if draft["info"] == nil { draft.set("info", true) }
        try draft.set(source: local?.source ?? arguments[source])
        let job: Job
        do throws(InvalidJobError) {
            job = try ValidatedJob(draft, fallbackID: "-", by: configuration.jobReader).job
        } catch {
            throw InputError(SizingOptions.facts.translated(error.failure.message, arguments), of: arguments)
        }
        let here = LocalRendering(configuration)
        let facts = try await closing({ await here.close() }) {
            try await here.render(here.fetch(local?.path, job.request, job.variants), job.variants).images[0].body
        }
        if arguments[json] {
            Console.print(json: facts)
        } else {
            try printTable(JSON.parse(facts, maximumSize: facts.count))
        }
        return .done
    }

    /// Prints a line for each member, and for each member of an object inside it: `exif.make`.
    private static func printTable(_ object: JSONElement, _ prefix: String = "") throws(JSONError) {
        try object.forEachMember { name, value throws(JSONError) in
            guard value.kind != .object else { return try printTable(value, "\(prefix)\(name).") }
            var text = value.asString ?? String(decoding: value.bytes, as: UTF8.self)
            if value.kind == .array {
                var parts: [String] = []
                try value.forEachElement { parts.append($0.asString ?? String(decoding: $0.bytes, as: UTF8.self)) }
                text = parts.joined(separator: " ")
            }
            let label = "\(prefix)\(name)"
            Console.print(label + String(repeating: " ", count: max(1, 28 - label.utf8.count)) + text)
        }
    }
}

/// Fetching and rendering in this process, for one command.
struct LocalRendering: Sendable {
    /// A source and the assets that rendering it needs.
    struct Fetched: Sendable {
        let source: LoadedSource
        let assets: [Source: [UInt8]]
    }

    /// The images of a job.
    struct RenderedJob: Sendable {
        /// The job with the source that was rendered.
        let job: Job
        /// The size of the source in bytes.
        let sourceBytes: Int
        /// The duration of the fetch.
        let fetch: Duration
        let rendering: RenderResult
        /// The index of the variant of each image.
        let variants: [Int]
        /// The failures of the other variants, if the job is partial.
        let failures: [JobError]
        /// The alternative source that was rendered; nil for that of the job.
        var alternative: String?
        /// The failure of the job, if its fallback picture was rendered; nil otherwise.
        var fallback: JobError?
    }

    private let configuration: Configuration
    private let pool: ThreadPool
    private let children: RenderProcessPool
    private let detector: DetectorPool?
    private let service: RenderService
    private let loader: SourceLoader

    /// Creates threads, render processes and connections. ``close()`` releases them.
    /// - Parameter threads: the maximum number of concurrent renderings.
    init(_ configuration: Configuration, threads: Int = 1) {
        self.configuration = configuration
        pool = Renderer.makePool(threads: threads)
        children = RenderProcessPool(configuration.options.renderChildren) { Console.complain("render process: \($0)") }
        let options = configuration.detector
        detector =
            options.command.isEmpty
            ? nil
            : DetectorPool(options) { event in
                if case .completed = event { return }
                Console.complain("detector: \(event)")
            }
        service = RenderService(
            renderer: Renderer(limits: configuration.options.worker.images, extensions: Configuration.extensions),
            pool: pool,
            children: children, detector: detector)
        loader = SourceLoader(configuration.sources, custom: Configuration.providers, drawingOn: pool)
    }

    /// - Parameter file: a local file to read instead of the source.
    /// - Throws: ``JobError``, ``FileError``, `CancellationError`.
    func fetch(_ file: String?, _ request: SourceRequest, _ variants: [Variant]) async throws -> Fetched {
        let loaded: LoadedSource
        if let file {
            let bytes = try await Files.read(file, limit: configuration.sources.maximumBytes)
            loaded = LoadedSource(body: bytes, completedAt: Timestamp.now.seconds)
        } else {
            loaded = try await loader.fetch(request).loaded()
        }
        let shared = AssetCache(maximumBytes: 0, defaultLifetime: 0) { [loader] request, _ in
            try await loader.fetch(request).loaded()
        }
        let assets = Set(variants.flatMap(\.assets))
        return Fetched(source: loaded, assets: try await shared.load(all: assets, of: request.tenant))
    }

    /// - Throws: ``JobError``, `CancellationError`.
    func render(_ fetched: Fetched, _ variants: [Variant]) async throws -> RenderResult {
        do {
            return try await service.render(fetched.source.body, variants, assets: fetched.assets)
        } catch let failure as JobError {
            throw failure.qualified(Array(variants.indices), of: variants.count)
        }
    }

    /// Fetches and renders a job like one attempt of a worker: from the first source that does not fail, otherwise from
    /// the fallback picture.
    /// - Parameter file: a local file to read instead of the job's own source.
    /// - Throws: ``JobError``, ``FileError``, `CancellationError`.
    func render(_ job: Job, reading file: String?) async throws -> RenderedJob {
        do {
            return try await job.firstSource { alternative in
                guard let alternative else { return try await renderOnly(job, reading: file) }
                let source = job.alternatives[alternative]
                var rendered = try await renderOnly(job.using(source), reading: nil)
                rendered.alternative = source.shownText
                return rendered
            }
        } catch let failure as JobError {
            guard let fallback = job.fallback else { throw failure }
            do {
                var rendered = try await renderOnly(job.using(fallback), reading: nil)
                rendered.fallback = failure
                return rendered
            } catch let error as JobError {
                Console.complain("fallback picture not available: \(error)")
                throw failure
            }
        }
    }

    /// Fetches and renders the source of a job. If the job is partial, variants that fail are left out.
    /// - Throws: ``JobError``, also if all variants of a partial job fail; ``FileError``, `CancellationError`.
    private func renderOnly(_ job: Job, reading file: String?) async throws -> RenderedJob {
        let start = ContinuousClock.now
        let fetched = try await fetch(file, job.request, job.variants)
        let duration = start.duration(to: .now)
        var (variants, failures): ([Int], [JobError]) = (Array(job.variants.indices), [])
        while true {
            do {
                let rendering = try await service.render(
                    fetched.source.body, variants.map { job.variants[$0] }, assets: fetched.assets)
                return RenderedJob(
                    job: job, sourceBytes: fetched.source.body.count, fetch: duration, rendering: rendering,
                    variants: variants, failures: failures)
            } catch let failure as JobError {
                let qualified = failure.qualified(variants, of: job.variants.count)
                guard job.partial, !failure.isRetryable, let place = failure.variant,
                    variants.indices.contains(place)
                else { throw qualified }
                failures.append(qualified)
                variants.remove(at: place)
                if variants.isEmpty { throw failures.first(where: { $0.variant == 0 }) ?? qualified }
            }
        }
    }

    func close() async {
        await loader.close()
        await blocking { [pool, children] in
            pool.shutdown()
            children.shutdown()
            detector?.shutdown()
        }
    }
}
