import JSON

/// What one look of the doctor's found.
struct Diagnosis: Sendable {
    /// How bad it is.
    enum Level: String, Sendable {
        case ok, warning, broken
    }

    let level: Level
    /// What was looked at, such as `Redis`.
    let subject: String
    let message: String
    /// What to do about it; nothing when all is well.
    let remedy: String?

    static func ok(_ subject: String, _ message: String) -> Diagnosis {
        Diagnosis(level: .ok, subject: subject, message: message, remedy: nil)
    }
    static func warning(_ subject: String, _ message: String, mend remedy: String) -> Diagnosis {
        Diagnosis(level: .warning, subject: subject, message: message, remedy: remedy)
    }
    static func broken(_ subject: String, _ message: String, mend remedy: String) -> Diagnosis {
        Diagnosis(level: .broken, subject: subject, message: message, remedy: remedy)
    }

    /// For people, with the remedy on a line of its own.
    var text: String {
        let mark =
            switch level {
            case .ok: Console.green("ok     ")
            case .warning: Console.yellow("warning")
            case .broken: Console.red("broken ")
            }
        return "\(mark)  \(subject.padded(to: 10)) \(message)" + (remedy.map { "\n                    \($0)" } ?? "")
    }
}

extension Diagnosis: JSONWritable {
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("level", level.rawValue)
            writer.member("subject", subject)
            writer.member("message", message)
            writer.member("remedy", remedy)
        }
    }
}
