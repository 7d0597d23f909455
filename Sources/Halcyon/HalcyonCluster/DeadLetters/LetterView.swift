import Digests
import Formats
import HalcyonModel
import HalcyonWire
import JSON

/// What is shown of a dead letter.
public struct LetterView: Sendable {
    /// The letter itself.
    public let letter: DeadLetter
    /// Whether it was sent back already.
    public let isReplayed: Bool
    /// The lane that it was put on.
    public let lane: Lane?
    /// Who was to be told, where it is an event and no job.
    public let webhook: String?
    /// The job's id; where it has none its topic, partition and offset, as its events have it.
    public let job: String?
    /// The source that it names.
    public let source: String?
    /// The tenant that it names.
    public let tenant: String?

    init(_ letter: DeadLetter, isReplayed: Bool, _ topics: Topics, _ reader: JobReader) {
        self.letter = letter
        self.isReplayed = isReplayed
        let provenance = letter.provenance
        lane = Lane.allCases.first { topics.jobs($0) == provenance?.topic }
        webhook = letter.webhook(topics)
        let value = letter.record.value ?? []
        if webhook != nil {
            let event = EventView(json: value)
            (job, source, tenant) = (event?.jobID, event?.subject, nil)
            return
        }
        // A message that is no job says what it can.
        let read = reader.refuse(value, for: Failure(.invalidJob, ""))
        job = read.id ?? provenance?.coordinates
        source = read.source
        // A message that is no JSON names no tenant.
        let root = try? JSON.parse(value, maximumSize: reader.maximumBytes)
        tenant = root?.member("tenant")?.asString
    }

    /// When it was put aside (RFC 3339).
    public var time: String { Timestamp(milliseconds: max(0, letter.record.timestamp)).rfc3339 }

    /// As one JSON object.
    /// - Parameter isWhole: with the message, its key and headers, and the history.
    public func json(isWhole: Bool) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("letter", "\(letter.id)")
            writer.member("time", time)
            writer.member("code", letter.code)
            writer.member("message", letter.message)
            writer.member("reason", letter.reason?.rawValue)
            writer.member("attempts", letter.history?.count)
            writer.member("webhook", webhook)
            writer.member("job", job)
            writer.member("source", source)
            writer.member("tenant", tenant)
            writer.member("from", letter.provenance?.coordinates)
            writer.member("lane", lane?.rawValue)
            writer.member("replays", letter.replays)
            writer.member("replayed", isReplayed)
            if isWhole { writeRest(to: &writer) }
        }
        return writer.bytes
    }

    private func writeRest(to writer: inout JSONWriter) {
        if let history = letter.history {
            writer.name("history")
            writer.raw(history.attempts.json)
        }
        writer.name("headers")
        writer.array { writer in
            for header in letter.headers {
                writer.object { writer in
                    writer.member("name", header.name)
                    writer.member("value", header.value.map(Self.text))
                }
            }
        }
        writer.member("key", letter.record.key.map(Self.text))
        let value = letter.record.value ?? []
        // A value that is not JSON is written as a string.
        if (try? JSON.parse(value, maximumSize: 64 << 20, maximumDepth: 64)) != nil {
            writer.name("original")
            writer.raw(value.onOneLine)
        } else {
            writer.member("originalBase64", Base64.encode(value))
        }
    }

    /// As UTF-8, or what comes near it.
    public static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
