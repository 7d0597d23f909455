import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonWire
import JSON
import Kafka
import Threads

/// What is printed of the jobs of a batch that was waited for, in the order of submission: as JSON a line for each, for people
/// a line for each image.
struct OutcomeReport {
    let batch: Batch
    /// What to say of jobs that have not ended.
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

    private func lines(_ prepared: PreparedJob, _ outcome: Batch.Outcome?, _ isSent: Bool) -> [String] {
        let source = prepared.job.source.text
        switch outcome {
        case .ready(let outputs, let failures, let milliseconds, let files):
            let lines = outputs.enumerated().map { index, output in
                let facts =
                    ["\(output.width)x\(output.height)", output.format?.rawValue, output.frames.map { "\($0) frames" }]
                    + [byteText(output.bytes), output.blurhash, output.dominantColor]
                    + [milliseconds.map { spanText(milliseconds: $0) }, files?[index] ?? output.key]
                return "\(Console.green("ok"))      \(source)  \(facts.compactMap(\.self).joined(separator: "  "))"
            }
            return lines + failures.map { failed(source, "\($0.code): \($0.message)") }
        case .failed(let code, let message): return [failed(source, message.isEmpty ? code : "\(code): \(message)")]
        case .cancelled: return [failed(source, "cancelled")]
        case .superseded(let generation): return [failed(source, "superseded by generation \(generation) of its slot")]
        case .notWritten(_, let reason): return [failed(source, "ready, but not written: \(reason)")]
        case .notSent(let error): return [failed(source, "not submitted: \(error)")]
        case nil where isSent: return ["\(Console.yellow("goes on")) \(source)  \(unfinished)"]
        case nil: return [failed(source, Self.notSubmitted)]
        }
    }

    private static let notSubmitted = "not submitted: no broker has said that it has it"

    private func failed(_ source: String, _ why: String) -> String { "\(Console.red("failed"))  \(source)  \(why)" }

    private func json(_ prepared: PreparedJob, _ outcome: Batch.Outcome?, _ isSent: Bool) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("id", prepared.job.id)
            writer.member("source", prepared.job.source.text)
            switch outcome {
            case .ready(let outputs, let failures, let milliseconds, let files):
                writer.member("outcome", "ready")
                writer.members(of: outputs, in: files)
                writer.members(of: failures)
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
    /// As events have them, where there are any.
    fileprivate mutating func members(of failures: [EventView.VariantFailure]) {
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

    /// As events have them: the key of the first, and then all.
    fileprivate mutating func members(of outputs: [EventView.Output], in files: [String]?) {
        member("key", outputs.first?.key)
        name("variants")
        array { writer in
            for (index, output) in outputs.enumerated() {
                writer.object { writer in
                    writer.member("key", output.key)
                    writer.member("width", output.width)
                    writer.member("height", output.height)
                    writer.member("format", output.format?.rawValue)
                    writer.member("bytes", output.bytes)
                    writer.member("frames", output.frames)
                    writer.member("blurhash", output.blurhash)
                    writer.member("dominantColor", output.dominantColor)
                    writer.member("file", files?[index])
                }
            }
        }
    }
}

/// Says on standard error why jobs of a batch have not ended yet: what workers write into the topics of retries tells how often each was tried, and what
/// happened last.
final class RetryNotices: Sendable {
    private let batch: Batch
    private let bar: ProgressBar
    /// When something may be said again.
    private let next = Lock(ContinuousClock.now)

    /// Of many jobs that are tried again not every one is told of.
    private static let pause = Duration.seconds(1)

    init(_ batch: Batch, over bar: ProgressBar) {
        self.batch = batch
        self.bar = bar
    }

    /// Goes on until the task is cancelled, or the topic cannot be read.
    func follow(_ reader: TopicReader) async {
        var records = reader.makeAsyncIterator()
        // Notices are an extra: the events say how jobs end.
        while let record = try? await records.next() {
            // Others may write into the topic too.
            guard let message = try? RetryMessage(record), let index = batch.index(at: message.provenance.coordinates),
                let last = message.history.attempts.last, isDue()
            else { continue }
            let wait = Double(max(0, message.due - Timestamp.now.milliseconds))
            bar.clear()
            Console.complain(
                "\(batch.jobs[index].job.source.text): \(counted(message.history.count, "attempt")) failed, the last as "
                    + "\(last.code.rawValue): \(last.message); tried again in \(spanText(milliseconds: wait))")
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
