import HalcyonModel
import JSON

extension JSONElement {
    /// How a result is handed over: a word, or where it is to be put.
    func delivery() throws(JSONError) -> Job.Delivery {
        guard kind == .object else { return try choice(of: Job.Delivery.Word.allCases).delivery }
        var url: WebURL?
        try forEachGiven { name, value throws(JSONError) in
            switch name {
            case "put": url = try value.target()
            default: throw JSONError(.unknown, "is no way to deliver: put")
            }
        }
        guard let url else { throw JSONError(.missing, "expected {\"put\": URL}") }
        return .put(url)
    }

    private func target() throws(JSONError) -> WebURL {
        let text = try string()
        do throws(Failure) {
            return try WebURL(secret: text)
        } catch {
            throw JSONError(.invalid, error.message)
        }
    }
}
