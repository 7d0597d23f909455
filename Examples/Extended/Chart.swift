import FoundationEssentials
import HalcyonModel
import HalcyonSources

/// A bar chart of values from 0 to 100: `"source": "chart:3,7,5"` or `{"chart": {"values": [3, 7, 5]}}`.
struct Chart: CustomSourceProvider {
    let name = "chart"

    private struct Parameters: Decodable { let values: [Int] }

    private func values(_ reference: String) throws(JobError) -> [Int] {
        let read =
            reference.hasPrefix("{")
            ? (try? JSONDecoder().decode(Parameters.self, from: Data(reference.utf8)))?.values
            : reference.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) ?? -1 }
        guard let values = read, (1...100).contains(values.count), values.allSatisfy((0...100).contains) else {
            throw JobError(.invalidJob, "expected 1 to 100 whole numbers from 0 to 100")
        }
        return values
    }

    /// Both notations have the same key.
    func cacheKey(for reference: String) throws(JobError) -> String {
        try values(reference).map(\.description).joined(separator: ",")
    }

    func fetch(_ reference: String, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        let values = try values(reference)
        let bars = values.enumerated().map { place, value in
            "<rect x='\(place * 10 + 1)' y='\(100 - value)' width='8' height='\(value)' fill='steelblue'/>"
        }
        let svg =
            "<svg xmlns='http://www.w3.org/2000/svg' width='\(values.count * 10)' height='100'>\(bars.joined())</svg>"
        return .loaded(LoadedSource(body: Array(svg.utf8), lifetime: .seconds(86_400)))
    }
}
