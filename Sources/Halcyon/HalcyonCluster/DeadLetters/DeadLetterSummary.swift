import Formats
import HalcyonCoding
import HalcyonModel
import Hashing
import JSON

/// The properties of a dead letter that lists and filters use.
public struct DeadLetterSummary: Sendable {
    /// The dead letter.
    public let letter: DeadLetter
    /// True if the dead letter was sent back already.
    public let isReplayed: Bool
    /// The lane that the job was submitted to.
    public let lane: Lane?
    /// The webhook of an event that could not be delivered; nil for a job.
    public let webhook: String?
    /// The id of the job; for a job without an id, its topic, partition and offset, as in its events.
    public let job: String?
    /// The source of the job.
    public let source: String?
    /// The tenant of the job, or of its preset if the decoder has it.
    public let tenant: String?

    init(_ letter: DeadLetter, isReplayed: Bool, _ topics: Topics, _ reader: JobDecoder) {
        self.letter = letter
        self.isReplayed = isReplayed
        let provenance = letter.provenance
        lane = Lane.allCases.first { topics.jobs($0) == provenance?.topic }
        webhook = letter.webhook(topics)
        let value = letter.record.value ?? []
        if webhook != nil {
            let event = DecodedEvent(json: value)
            (job, source, tenant) = (event?.jobID, event?.subject, nil)
            return
        }
        // Messages that are not valid jobs are decoded as far as possible.
        let read = reader.refuse(value, for: JobError(.invalidJob, ""))
        job = read.id ?? provenance?.coordinates
        source = read.source
        // An invalid tenant is listed as it is. A message that is not JSON names none.
        tenant =
            reader.tenant(of: value)
            ?? (try? JSON.parse(value, maximumSize: reader.maximumBytes))?.member("tenant")?.asString
    }

    /// The time at which the dead letter was written (RFC 3339).
    public var time: String { Timestamp(milliseconds: max(0, letter.record.timestamp)).rfc3339 }

    /// Encodes the dead letter as a JSON object.
    /// - Parameter isWhole: true to include the message with its key and headers, and the history of attempts.
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
            writer.member("cut", letter.originalBytes)
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

    /// Decodes bytes as UTF-8 and replaces invalid sequences.
    public static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
