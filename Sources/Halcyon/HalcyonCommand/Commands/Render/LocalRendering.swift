import CivilTime
import HalcyonImaging
import HalcyonModel
import HalcyonRendering
import HalcyonSources
import Threads

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
