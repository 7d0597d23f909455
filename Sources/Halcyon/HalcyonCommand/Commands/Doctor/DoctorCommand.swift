import JSON
import ProgramSettings

/// `halcyon doctor`: looks at everything that a worker needs.
enum DoctorCommand: Subcommand {
    private static let json = Parameter.flag("json", help: "Print one JSON object.")

    static let command = Command(
        "doctor", summary: "Check Kafka, Redis, libraries, formats, fonts, ffmpeg and limits, and say what to mend.",
        discussion: "Nothing is changed. Exit code 1 when something is broken; a warning alone is none.",
        parameters: [json],
        examples: [
            .init(
                "halcyon doctor --brokers kafka:9092 --redis redis://redis",
                "Where a worker would run, with its settings."),
            .init("halcyon doctor --json | jq '.findings[] | select(.level != \"ok\")'", "What is wrong alone."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let worker = try configuration.worker()
        configuration.openFormats()
        let notifiers = configuration.notifier(beside: worker).groups
        async let kafka = KafkaExamination(
            access: KafkaAccess(configuration), group: worker.group, notifiers: notifiers
        ).findings()
        async let redis = RedisExamination(endpoint: worker.redis).findings()
        async let codecs = CodecExamination().findings()
        let machine = MachineExamination(
            fetches: worker.fetches, concurrency: worker.concurrency, memoryLimit: worker.memoryLimit)
        let findings = try await kafka + redis + [machine.libraries, machine.videos] + codecs + machine.limits
        try Task.checkCancellation()

        let isHealthy = !findings.contains { $0.level == .broken }
        if arguments[json] {
            Console.printObject { writer in
                writer.member("healthy", isHealthy)
                writer.member("version", Version.number)
                writer.member("findings", findings)
            }
        } else {
            for finding in findings { Console.print(finding.text) }
        }
        return isHealthy ? .done : .failed
    }
}

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
