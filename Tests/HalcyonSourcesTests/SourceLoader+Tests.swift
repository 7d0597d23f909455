import Concurrency
import HalcyonModel
import Testing
import Vips

@testable import HalcyonSources

extension SourceOptions {
    /// The default options with timeouts of 600 s. Tests of timeouts set their own.
    static var patient: SourceOptions {
        var options = SourceOptions()
        (options.timeout, options.stallTimeout) = (.seconds(600), .seconds(600))
        (options.connectTimeout, options.video.time) = (.seconds(600), .seconds(600))
        return options
    }
}

/// Runs `body` with a loader, and closes the loader.
func withLoader<Result>(
    custom: [any CustomSourceProvider] = [], _ change: (inout SourceOptions) -> Void = { _ in },
    _ body: (SourceLoader) async throws -> Result
) async throws -> Result {
    var options = SourceOptions.patient
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
    /// Loads a source without a tenant and without additional headers.
    func load(_ source: Source) async throws -> LoadedSource { try await load(SourceRequest(source)) }

    /// Loads the source of a request.
    func load(_ request: SourceRequest) async throws -> LoadedSource { try await fetch(request).loaded() }

    /// Loads a source conditionally, without a tenant and without additional headers.
    func load(_ source: Source, ifNoneMatch known: Validators) async throws -> FetchResponse {
        try await fetch(SourceRequest(source), ifNoneMatch: known)
    }

    /// Returns the error of loading a source, or nil if it is loaded.
    func failure(of source: Source) async throws -> JobError? {
        do {
            _ = try await load(source)
            return nil
        } catch let failure as JobError {
            return failure
        }
    }

    /// Returns the error of parsing or loading a source, or nil if it is loaded.
    func failure(of text: String) async throws -> JobError? {
        do {
            return try await failure(of: try Source(text))
        } catch let failure as JobError {
            return failure
        }
    }
}
