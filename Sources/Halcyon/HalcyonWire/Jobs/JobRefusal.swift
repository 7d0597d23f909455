import HalcyonModel
import JSON

/// A message that is no job that can be done, and what an event can still say of it: each field for itself, wherever it stands
/// in the message.
public struct JobRefusal: Error, Sendable {
    /// `invalid_job` or `unsupported_source`, with the field's name.
    public let failure: Failure
    /// The job's id, when the message has a good one: then an event can say what is wrong.
    public let id: String?
    /// The source, when it is a text that can be an event's subject.
    public let source: String?
    /// Where the job wanted its end told, if that may be.
    public let webhook: Webhook?
    /// What the job wanted given back.
    public let echo: Job.Echo

    /// - Parameters:
    ///   - root: the message, if it is JSON at all.
    ///   - reader: who refused it.
    init(_ failure: Failure, of root: JSONElement? = nil, read reader: JobReader) {
        func field<Value>(_ name: String, _ read: (JSONElement) throws(JSONError) -> Value) -> Value? {
            // A field that is wrong too is left out.
            root?.member(name)?.given.flatMap { try? read($0) }
        }
        self.failure = failure
        id = field("id", JobFields.id)
        source = field("source") { source throws(JSONError) in try Self.subject(source, reader) }
        let webhook: Webhook? = field("webhook") { value throws(JSONError) in try value.webhook() }
        // A webhook that may not be told is not.
        self.webhook = webhook.flatMap { (try? reader.checkWebhook($0)) == nil ? nil : $0 }
        echo = Job.Echo(
            metadata: field("metadata", JobFields.echoed), placeholder: field("placeholder", JobFields.echoed),
            altText: field("altText", JobFields.echoed))
    }

    /// A source's text, be it one that is not served.
    private static func subject(_ source: JSONElement, _ reader: JobReader) throws(JSONError) -> String {
        // One that is not served is shown as it stands.
        if let source = try? reader.source(source) { return source.shownText }
        let text = try source.string()
        guard (1...WebURL.longest).contains(text.utf8.count) else { throw JSONError(.invalid, "is no subject") }
        return text.withoutCredentials
    }
}

extension Failure {
    /// The failure of a message that cannot be read.
    init(_ error: JSONError) {
        let code: FailureCode =
            switch error.code {
            case .noMemory: .internal
            case .unsupported: .unsupportedSource
            default: .invalidJob
            }
        self.init(code, error.path.isEmpty ? "the message: \(error)" : "\(error)", cause: error)
    }
}
