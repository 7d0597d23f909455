import Digests
import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonWire
import JSON
import Kafka

/// An event that a webhook is to be told of, and how that went so far.
struct WebhookNotice: Sendable {
    /// Who is to be told.
    let webhook: Webhook
    /// The event's id, which stays the same however often it is sent.
    let id: String
    /// What happened; nil for what a later version tells of.
    let kind: Event.Kind?
    /// The event, as it was committed.
    let body: [UInt8]
    /// Where it was committed.
    let provenance: Provenance
    /// The attempts so far; perhaps none.
    let history: AttemptHistory
    /// Which of the topics of webhooks it came through; nil when it comes from that of events.
    let topic: Int?
    /// Seconds until it is to be sent.
    let wait: Double

    /// Whether a record is for a webhook, or claims to be.
    static func isIn(_ record: ConsumedRecord, _ topics: Topics) -> Bool {
        record.topic != topics.events || record.headers.contains { $0.name == EventPublisher.webhookHeader }
    }

    /// - Throws: ``Failure`` `invalid_job` for what is no event, or not for a webhook.
    init(_ record: ConsumedRecord, _ topics: Topics) throws(Failure) {
        let header = record.headers.last { $0.name == EventPublisher.webhookHeader }?.value
        guard let header else { throw Failure(.invalidJob, "no header says for which webhook the message is") }
        webhook = try Webhook(String(decoding: header, as: UTF8.self))
        body = record.value ?? []
        let text: (id: String, type: String)
        do {
            // Values that jobs want given back lie deeper here than in the job.
            let root = try JSON.parse(body, maximumSize: max(1, body.count), maximumDepth: 64)
            guard let id = root.member("id"), let type = root.member("type") else {
                throw Failure(.invalidJob, "the message has no id or no type, as events have")
            }
            text = (try id.string(), try type.string())
        } catch {
            throw Failure(.invalidJob, "the message is no event: \(error)", cause: error)
        }
        // It stands in a header line.
        guard !text.id.isEmpty, text.id.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw Failure(.invalidJob, "the event's id is no text for a header")
        }
        id = text.id
        kind =
            text.type.hasPrefix(Event.typePrefix)
            ? Event.Kind(rawValue: String(text.type.dropFirst(Event.typePrefix.count))) : nil
        topic = topics.webhookRetries.firstIndex(of: record.topic)
        if let topic {
            let message = try RetryMessage(record)
            (provenance, history) = (message.provenance, message.history)
            wait = message.left(atMost: topics.webhookDelays[topic] / .seconds(1))
        } else {
            provenance = Provenance(record)
            history = AttemptHistory(began: Timestamp.now.milliseconds)
            wait = 0
        }
    }
}

/// What webhooks are signed with: a symmetric secret as the Standard Webhooks specification (1.0.0, "Signature scheme") has it.
public struct WebhookSecret: Hashable, Sendable {
    private let key: [UInt8]

    private static let prefix = "whsec_"
    /// Bytes of a secret.
    public static let lengths = 24...64

    /// Reads `whsec_` and the base64 of 24 to 64 bytes; nil for anything else.
    public init?(_ text: String) {
        guard text.hasPrefix(Self.prefix), let key = Base64.decode(String(text.dropFirst(Self.prefix.count))),
            Self.lengths.contains(key.count)
        else { return nil }
        self.key = key
    }

    /// As it is read: not for logs.
    public var text: String { Self.prefix + Base64.encode(key) }

    /// What a header `webhook-signature` says for this secret.
    /// - Parameter timestamp: of the attempt, in seconds since 1970.
    public func signature(id: String, timestamp: Int64, body: [UInt8]) -> String {
        let code = HMACSHA256.code(of: Array("\(id).\(timestamp).".utf8) + body, key: key)
        return "v1,\(Base64.encode(code.bytes))"
    }
}
