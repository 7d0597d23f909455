import Concurrency
import HalcyonModel
import Testing
import Vips

@testable import HalcyonSources

/// Runs `body` with a loader, which is closed in the end.
func withLoader<Result>(
    custom: [any CustomSourceProvider] = [], _ change: (inout SourceOptions) -> Void = { _ in },
    _ body: (SourceLoader) async throws -> Result
) async throws -> Result {
    var options = SourceOptions()
    change(&options)
    let pool = ThreadPool(name: "draw", threads: 1, onThreadEnd: VipsLibrary.endThread)
    let loader = SourceLoader(options, custom: try CustomProviders(custom), drawingOn: pool)
    let result: Swift.Result<Result, any Error>
    do { result = .success(try await body(loader)) } catch { result = .failure(error) }
    await loader.close()
    await blocking { pool.shutdown() }
    return try result.get()
}

extension SourceLoader {
    /// A source for nobody in particular, with nothing added.
    func load(_ source: Source) async throws -> LoadedSource { try await load(SourceRequest(source)) }

    /// A source with what is added to its request.
    func load(_ request: SourceRequest) async throws -> LoadedSource { try await fetch(request).loaded() }

    /// A source for nobody in particular, with nothing added.
    func load(_ source: Source, ifNoneMatch known: Validators) async throws -> FetchResponse {
        try await fetch(SourceRequest(source), ifNoneMatch: known)
    }

    /// Why a source is not loaded; nil when it is.
    func failure(of source: Source) async throws -> JobError? {
        do {
            _ = try await load(source)
            return nil
        } catch let failure as JobError {
            return failure
        }
    }

    /// Also of a text that is no source.
    func failure(of text: String) async throws -> JobError? {
        do {
            return try await failure(of: try Source(text))
        } catch let failure as JobError {
            return failure
        }
    }
}
