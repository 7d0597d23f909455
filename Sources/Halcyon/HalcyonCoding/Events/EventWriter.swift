import Formats
import HalcyonModel
import Hashing
import JSON

extension Event {
    /// The media type of ``json``: CloudEvents 1.0 in structured mode.
    public static let mediaType = "application/cloudevents+json"
    /// The prefix of the kind in the CloudEvents `type`.
    public static let typePrefix = "halcyon.image."

    /// The event in the format of `schemas/event.schema.json`.
    public var json: [UInt8] {
        var writer = JSONWriter(capacity: 1024)
        writer.object { writer in
            writer.member("specversion", "1.0")
            writer.member("id", id)
            writer.member("source", "/halcyon")
            writer.member("type", Self.typePrefix + kind.rawValue)
            writer.member("subject", subject)
            writer.member("time", Timestamp(seconds: time).rfc3339)
            writer.member("datacontenttype", "application/json")
            writer.member("traceparent", traceparent)
            writer.name("data")
            writer.object { writer in
                if let jobID { writeJob(jobID, to: &writer) }
                writeBody(to: &writer)
                writer.member("warnings", warnings.isEmpty ? nil : warnings)
            }
        }
        return writer.bytes
    }

    private func writeJob(_ id: String, to writer: inout JSONWriter) {
        writer.name("job")
        writer.object { writer in
            writer.member("id", id)
            writer.member("batch", batch)
            writer.member("preset", preset)
            for (name, json) in [
                ("metadata", echo.metadata), ("placeholder", echo.placeholder), ("altText", echo.altText),
            ] {
                guard let json else { continue }
                writer.name(name)
                writer.raw(json)
            }
        }
    }

    private func writeBody(to writer: inout JSONWriter) {
        switch body {
        case .started, .cancelled: break
        case .progress(let progress, let attempt):
            writer.member("stage", Timings.Stage.fetch.name)
            writer.member("received", progress.received)
            writer.member("total", progress.total)
            writer.member("attempt", attempt)
        case .superseded(let generation): writer.member("supersededBy", generation)
        case .purged(let purged): purged.writeMembers(to: &writer)
        case .ready(let ready): ready.write(to: &writer)
        case .failed(let failure, let attempts, let timings):
            writer.member("code", failure.code.rawValue)
            writer.member("message", failure.message)
            writer.member("retryable", failure.isRetryable)
            writer.member("attempts", attempts)
            writer.member("timings", timings)
        }
    }
}

extension Ready {
    fileprivate func write(to writer: inout JSONWriter) {
        let first = expiresAt
        let moment = first.map(rfc3339)
        writer.member("key", results.first?.key)
        writer.name("variants")
        writer.array { writer in
            // Results are usually stored together, so their expiration is formatted only once.
            for result in results {
                result.write(to: &writer, result.expiresAt == first ? moment : result.expiresAt.map(rfc3339))
            }
        }
        if !failures.isEmpty {
            writer.name("failures")
            writer.array { writer in
                for failure in failures {
                    writer.object { writer in
                        writer.member("variant", failure.variant)
                        writer.member("code", failure.code.rawValue)
                        writer.member("message", failure.message)
                    }
                }
            }
        }
        writer.member("expiresAt", moment)
        writer.member("origin", origin.rawValue)
        writer.member("attempts", attempts > 1 ? attempts : nil)
        writer.member("timings", timings)
        writer.member("source", results.first?.facts.source)
        writer.member("alternative", alternative)
        if let fallback {
            writer.name("fallback")
            writer.object { writer in
                writer.member("code", fallback.code.rawValue)
                writer.member("message", fallback.message)
                writer.member("retryable", fallback.isRetryable)
            }
        }
    }
}

extension Purged: JSONWritable {
    /// Writes an object with the members of the event.
    public func write(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

    fileprivate func writeMembers(to writer: inout JSONWriter) {
        switch target {
        case .source(let source): writer.member("source", source)
        case .tag(let tag): writer.member("tag", tag)
        case .key(let key): writer.member("key", key)
        case .tenant: break
        }
        writer.member("tenant", tenant)
        writer.member("count", count)
        writer.member("cacheTags", cacheTags.isEmpty ? nil : cacheTags)
    }
}

extension ImageResult {
    fileprivate func write(to writer: inout JSONWriter, _ moment: String?) {
        writer.object { writer in
            writer.member("key", key)
            writer.member("name", name)
            facts.writeMembers(to: &writer)
            writer.member("expiresAt", moment)
            writer.member("url", url)
            writer.member("put", uploadedTo)
            writer.member("data", inline.map(Base64.encode))
        }
    }
}

private func rfc3339(_ seconds: Double) -> String { Timestamp(seconds: seconds).rfc3339 }

extension Timings: JSONWritable {
    /// Writes the milliseconds of each stage, rounded to microseconds.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            for stage in Stage.allCases {
                writer.member(stage.name, self[stage].map { ($0 * 1000).rounded() / 1000 })
            }
        }
    }
}
