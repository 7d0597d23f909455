import HalcyonModel
import HalcyonSources

/// A picture of its own, if it comes to that; `"number"` tells sources apart.
struct CrashingProvider: CustomSourceProvider {
    let name = "deadly"

    func cacheKey(for reference: String) throws(JobError) -> String {
        _ = try Death(reference)
        return reference
    }

    func fetch(_ reference: String, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        try Death(reference).happen()
        let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><circle r='9'/></svg>"
        return .loaded(LoadedSource(body: Array(svg.utf8), lifetime: .seconds(600)))
    }
}
