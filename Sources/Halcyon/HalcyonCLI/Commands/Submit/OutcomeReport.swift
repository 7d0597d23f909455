import Concurrency
import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka

/// The report on the jobs of a batch in the order of submission: one JSON object for each job, or one text line for
/// each image.
struct OutcomeReport {
    let batch: SubmittedJobs
    /// The message for unfinished jobs.
    let unfinished: String

    func print(asJSON: Bool) {
        for (index, outcome) in batch.outcomes.enumerated() {
            let (prepared, isSent) = (batch.jobs[index], batch.isSent(index))
            if asJSON {
                Console.print(json: json(prepared, outcome, isSent))
            } else {
                for line in lines(prepared, outcome, isSent) { Console.print(line) }
            }
        }
    }

    private func lines(_ prepared: ValidatedJob, _ outcome: SubmittedJobs.Outcome?, _ isSent: Bool) -> [String] {
        let source = prepared.job.source.text
        switch outcome {
        case .ready(let outputs, let failures, let fallback, let milliseconds, let files):
            let lines = outputs.enumerated().map { index, output in
                let palette = output.palette?.joined(separator: " ")
                let info = output.info.map { String(decoding: $0, as: UTF8.self) }
                let facts: [String?] = [
                    "\(output.width)x\(output.height)", output.format?.rawValue,
                    output.frames.map { "\($0) frames" }, byteText(output.bytes), output.blurhash,
                    output.dominantColor, palette, output.thumbhash, output.phash, output.faces?.summary,
                    output.trim?.trimText,
                    output.encoding?.summary, info,
                    fallback.map { "fallback picture: \($0)" },
                    milliseconds.map { spanText(milliseconds: $0) }, files?[index] ?? output.key,
                ]
                return "\(Console.green("ok"))      \(source)  \(facts.compactMap(\.self).joined(separator: "  "))"
            }
            if prepared.job.isPrefetch { return ["\(Console.green("ok"))      \(source)  prefetched"] }
            return lines + failures.map { failed(source, "\($0.code): \($0.message)") }
        case .failed(let code, let message): return [failed(source, message.isEmpty ? code : "\(code): \(message)")]
        case .cancelled: return [failed(source, "cancelled")]
        case .superseded(let generation): return [failed(source, "superseded by generation \(generation) of its slot")]
        case .notWritten(_, let reason): return [failed(source, "ready, but not written: \(reason)")]
        case .notSent(let error): return [failed(source, "not submitted: \(error)")]
        case nil where isSent: return ["\(Console.yellow("pending")) \(source)  \(unfinished)"]
        case nil: return [failed(source, Self.notSubmitted)]
        }
    }

    private static let notSubmitted = "not submitted: no broker acknowledged the job"

    private func failed(_ source: String, _ why: String) -> String { "\(Console.red("failed"))  \(source)  \(why)" }

    private func json(_ prepared: ValidatedJob, _ outcome: SubmittedJobs.Outcome?, _ isSent: Bool) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("id", prepared.job.id)
            writer.member("source", prepared.job.source.text)
            switch outcome {
            case .ready(let outputs, let failures, let fallback, let milliseconds, let files):
                writer.member("outcome", "ready")
                writer.members(of: outputs, in: files)
                writer.members(of: failures)
                writer.member("fallback", fallback)
                writer.member("ms", milliseconds)
            case .failed(let code, let message):
                writer.member("outcome", "failed")
                writer.member("code", code)
                writer.member("message", message)
            case .cancelled: writer.member("outcome", "cancelled")
            case .superseded(let generation):
                writer.member("outcome", "superseded")
                writer.member("supersededBy", generation)
            case .notWritten(let outputs, let reason):
                writer.member("outcome", "notWritten")
                writer.members(of: outputs, in: nil)
                writer.member("message", reason)
            case .notSent(let error):
                writer.member("outcome", "notSubmitted")
                writer.member("message", "\(error)")
            case nil where !isSent:
                writer.member("outcome", "notSubmitted")
                writer.member("message", Self.notSubmitted)
            case nil:
                writer.member("outcome", "unfinished")
                writer.member("message", unfinished)
            }
            writer.member("warnings", prepared.warnings.isEmpty ? nil : prepared.warnings)
        }
    }
}

extension JSONWriter {
    /// Writes the failures in the format of events, if there are any.
    fileprivate mutating func members(of failures: [DecodedEvent.VariantFailure]) {
        if failures.isEmpty { return }
        name("failures")
        array { writer in
            for failure in failures {
                writer.object { writer in
                    writer.member("variant", failure.variant)
                    writer.member("code", failure.code)
                    writer.member("message", failure.message)
                }
            }
        }
    }

    /// Writes the outputs in the format of events: the key of the first, followed by all outputs.
    fileprivate mutating func members(of outputs: [DecodedEvent.Output], in files: [String]?) {
        member("key", outputs.first?.key)
        name("variants")
        array { writer in
            for (index, output) in outputs.enumerated() {
                writer.object { writer in
                    writer.member("key", output.key)
                    writer.member("name", output.name)
                    writer.member("width", output.width)
                    writer.member("height", output.height)
                    writer.member("format", output.format?.rawValue)
                    writer.member("bytes", output.bytes)
                    writer.member("frames", output.frames)
                    writer.member("blurhash", output.blurhash)
                    writer.member("dominantColor", output.dominantColor)
                    writer.member("trim", output.trim)
                    writer.member("palette", output.palette)
                    writer.member("thumbhash", output.thumbhash)
                    writer.member("phash", output.phash)
                    writer.member("faces", output.faces)
                    if let info = output.info {
                        writer.name("info")
                        writer.raw(info)
                    }
                    writer.member("encoding", output.encoding)
                    writer.member("put", output.uploadedTo)
                    writer.member("file", files?[index])
                }
            }
        }
    }
}

/// Reports retries of a batch's jobs on standard error. The messages in the retry topics contain the number of attempts
/// and the last failure of each job.
final class RetryNotices: Sendable {
    private let batch: SubmittedJobs
    private let bar: ProgressBar
    /// The earliest time of the next report.
    private let next = Lock(ContinuousClock.now)

    /// The minimum time between two reports. It limits the output if many jobs are retried.
    private static let pause = Duration.seconds(1)

    init(_ batch: SubmittedJobs, over bar: ProgressBar) {
        self.batch = batch
        self.bar = bar
    }

    /// Follows a retry topic until the task is cancelled or the topic cannot be read.
    func follow(_ reader: TopicReader) async {
        var records = reader.makeAsyncIterator()
        // Errors are ignored: notices are optional, and the outcome of a job comes from its events.
        while let record = try? await records.next() {
            // Other programs may write to the topic.
            guard let message = try? RetryMessage(record), let index = batch.index(at: message.provenance.coordinates),
                let last = message.history.attempts.last, isDue()
            else { continue }
            let wait = Double(max(0, message.due - Timestamp.now.milliseconds))
            bar.clear()
            Console.complain(
                "\(batch.jobs[index].job.source.text): \(counted(message.history.count, "attempt")) failed, the last "
                    + "with \(last.code.rawValue): \(last.message); retrying in \(spanText(milliseconds: wait))")
        }
    }

    private func isDue() -> Bool {
        next.withLock { next in
            guard .now >= next else { return false }
            next = .now + Self.pause
            return true
        }
    }
}

extension PixelRect {
    /// The part that remained when margins were removed, such as `trimmed to 300x200 at 12,8`.
    var trimText: String { "trimmed to \(width)x\(height) at \(x),\(y)" }
}

extension [DetectedFace] {
    /// The number of faces: `2 faces`.
    var summary: String { "\(count) face\(count == 1 ? "" : "s")" }
}
