import HalcyonModel
import HalcyonSources

/// A provider that crashes or hangs. If it returns, the source is an SVG image; `"number"` tells sources apart.
struct CrashingProvider: CustomSourceProvider {
    let name = "crashing"

    func cacheKey(for reference: String) throws(JobError) -> String {
        _ = try CrashParameters(reference)
        return reference
    }

    func fetch(_ reference: String, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        try CrashParameters(reference).crash()
        let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><circle r='9'/></svg>"
        return .loaded(LoadedSource(body: Array(svg.utf8), lifetime: .seconds(600)))
    }
}
