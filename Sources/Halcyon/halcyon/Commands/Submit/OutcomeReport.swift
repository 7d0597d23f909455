import HalcyonModel
import JSON

/// What is printed of the jobs of a batch that was waited for: one line each, in the order of submission.
struct OutcomeReport {
    let batch: Batch
    /// What to say of jobs that have not ended.
    let unfinished: String

    func print(asJSON: Bool) {
        for (prepared, outcome) in zip(batch.jobs, batch.outcomes) {
            if asJSON {
                Console.print(json: json(prepared, outcome))
            } else {
                Console.print(line(prepared, outcome))
            }
        }
    }

    private func line(_ prepared: PreparedJob, _ outcome: Batch.Outcome?) -> String {
        let source = prepared.job.source.text
        switch outcome {
        case .ready(let output, let milliseconds, let file):
            let facts = [
                "\(output.width)x\(output.height)", output.format?.rawValue, byteText(output.bytes),
                milliseconds.map { spanText(milliseconds: $0) }, file ?? output.key,
            ]
            return "\(Console.green("ok"))      \(source)  \(facts.compactMap(\.self).joined(separator: "  "))"
        case .failed(let code, let message): return failed(source, message.isEmpty ? code : "\(code): \(message)")
        case .notWritten(_, let reason): return failed(source, "ready, but not written: \(reason)")
        case .notSent(let error): return failed(source, "not submitted: \(error)")
        case nil: return failed(source, unfinished)
        }
    }

    private func failed(_ source: String, _ why: String) -> String { "\(Console.red("failed"))  \(source)  \(why)" }

    private func json(_ prepared: PreparedJob, _ outcome: Batch.Outcome?) -> [UInt8] {
        var writer = JSONWriter(capacity: 256)
        writer.object { writer in
            writer.member("id", prepared.job.id)
            writer.member("source", prepared.job.source.text)
            switch outcome {
            case .ready(let output, let milliseconds, let file):
                writer.member("outcome", "ready")
                writer.members(of: output)
                writer.member("ms", milliseconds)
                writer.member("file", file)
            case .failed(let code, let message):
                writer.member("outcome", "failed")
                writer.member("code", code)
                writer.member("message", message)
            case .notWritten(let output, let reason):
                writer.member("outcome", "notWritten")
                writer.members(of: output)
                writer.member("message", reason)
            case .notSent(let error):
                writer.member("outcome", "notSubmitted")
                writer.member("message", "\(error)")
            case nil:
                writer.member("outcome", "unfinished")
                writer.member("message", unfinished)
            }
        }
        return writer.bytes
    }
}

extension JSONWriter {
    fileprivate mutating func members(of output: EventView.Output) {
        member("key", output.key)
        member("width", output.width)
        member("height", output.height)
        member("format", output.format?.rawValue)
        member("bytes", output.bytes)
    }
}
