import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import Hashing
import JSON
import Kafka

/// The receiver of an event: a webhook, or a hook that is notified of purges.
enum NotificationTarget: Hashable, Sendable {
    case webhook(Webhook)
    case purgeHook(String)

    /// The beginning of the text of a purge hook. It is not valid in a ``Webhook``, so that jobs cannot name one.
    private static let hookPrefix = "purge/"

    /// Parses the value of the header.
    /// - Throws: ``JobError`` `invalid_job` if it is neither.
    init(_ text: String) throws(JobError) {
        let name = text.dropFirst(Self.hookPrefix.count)
        self =
            text.hasPrefix(Self.hookPrefix) && Webhook.isName(String(name))
            ? .purgeHook(String(name)) : .webhook(try Webhook(text))
    }

    /// The value of the header.
    var text: String {
        switch self {
        case .webhook(let webhook): webhook.text
        case .purgeHook(let name): Self.hookPrefix + name
        }
    }
}

/// An event for a webhook or a purge hook, with the history of its delivery.
struct WebhookRequest: Sendable {
    /// The receiver.
    let target: NotificationTarget
    /// The id of the event, which is the same for each attempt.
    let id: String
    /// The kind of the event. Nil if this version does not know it.
    let kind: Event.Kind?
    /// The event as it was committed.
    let body: [UInt8]
    /// The tags of the responses that a purge makes invalid (``CacheTag``); empty for other events.
    var cacheTags: [String] { DecodedEvent(json: body)?.cacheTags ?? [] }
    /// The record that the event was committed as.
    let provenance: OriginalRecord
    /// The attempts so far.
    let history: AttemptHistory
    /// The index of the retry topic that the record was received from. Nil for the event topic.
    let topic: Int?
    /// The seconds until it is due.
    let wait: Double

    /// Returns true if a record has a webhook, or claims to.
    static func isIn(_ record: ConsumedRecord, _ topics: Topics) -> Bool {
        record.topic != topics.events || record.headers.contains { $0.name == EventPublisher.webhookHeader }
    }

    /// - Throws: ``JobError`` `invalid_job` if the record is not an event for a webhook.
    init(_ record: ConsumedRecord, _ topics: Topics) throws(JobError) {
        let header = record.headers.last { $0.name == EventPublisher.webhookHeader }?.value
        guard let header else { throw JobError(.invalidJob, "the message has no webhook header") }
        target = try NotificationTarget(String(decoding: header, as: UTF8.self))
        body = record.value ?? []
        let text: (id: String, type: String)
        do {
            // Passthrough metadata is nested more deeply here than in the job.
            let root = try JSON.parse(body, maximumSize: max(1, body.count), maximumDepth: 64)
            guard let id = root.member("id"), let type = root.member("type") else {
                throw JobError(.invalidJob, "the message has no id or type and is not an event")
            }
            text = (try id.string(), try type.string())
        } catch {
            throw JobError(.invalidJob, "the message is not an event: \(error)", cause: error)
        }
        // The id becomes the value of an HTTP header.
        guard !text.id.isEmpty, text.id.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw JobError(.invalidJob, "the event's id cannot be sent in a header")
        }
        id = text.id
        kind =
            text.type.hasPrefix(Event.typePrefix)
            ? Event.Kind(rawValue: String(text.type.dropFirst(Event.typePrefix.count))) : nil
        topic = topics.webhookRetries.firstIndex(of: record.topic)
        if let topic {
            let message = try RetryMessage(record)
            (provenance, history) = (message.provenance, message.history)
            wait = message.left(upTo: topics.webhookDelays[topic] / .seconds(1))
        } else {
            provenance = OriginalRecord(record)
            history = AttemptHistory(began: Timestamp.now.milliseconds)
            wait = 0
        }
    }
}

/// The secret that signs webhooks: a symmetric secret as defined by the Standard Webhooks specification (1.0.0,
/// "Signature scheme").
public struct WebhookSecret: Hashable, Sendable {
    private let key: [UInt8]

    private static let prefix = "whsec_"
    /// The allowed lengths of a secret, in bytes.
    public static let lengths = 24...64

    /// Parses `whsec_` and the base64 of 24 to 64 bytes. Returns nil for any other text.
    public init?(_ text: String) {
        guard text.hasPrefix(Self.prefix), let key = Base64.decode(String(text.dropFirst(Self.prefix.count))),
            Self.lengths.contains(key.count)
        else { return nil }
        self.key = key
    }

    /// The text form of the secret. It must not be logged.
    public var text: String { Self.prefix + Base64.encode(key) }

    /// Returns the value of the `webhook-signature` header for this secret.
    /// - Parameter timestamp: The time of the attempt, in seconds since 1970.
    public func signature(id: String, timestamp: Int64, body: [UInt8]) -> String {
        let code = HMACSHA256.code(of: Array("\(id).\(timestamp).".utf8) + body, key: key)
        return "v1,\(Base64.encode(code.bytes))"
    }
}
