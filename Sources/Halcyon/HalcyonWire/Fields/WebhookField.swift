import HalcyonModel
import JSON

extension JSONElement {
    /// A webhook: a name or a URL.
    func webhook() throws(JSONError) -> Webhook {
        let text = try string()
        do throws(Failure) {
            return try Webhook(text)
        } catch {
            throw JSONError(.invalid, error.message)
        }
    }
}
