import JSON
import ProgramSettings

/// `halcyon doctor`: checks everything that a worker needs.
enum DoctorCommand: Subcommand {
    private static let json = Parameter.flag("json", help: "Print one JSON object.")

    static let command = Command(
        "doctor",
        summary:
            "Check Kafka, Redis, the result store, libraries, formats, the detector and limits, and suggest fixes.",
        discussion: """
            Read-only, except for a small object that is written to the result store and deleted. Exits with code 1 on \
            errors. Warnings do not affect the exit code.
            """,
        parameters: [json],
        examples: [
            .init(
                "halcyon doctor --brokers kafka:9092 --redis redis://redis",
                "Check the machine of a worker, with its settings."),
            .init("halcyon doctor --json | jq '.findings[] | select(.level != \"ok\")'", "Print only problems."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let worker = try configuration.worker()
        try configuration.prepareImaging()
        let notifiers = configuration.notifier(beside: worker).groups
        async let kafka = KafkaCheck(
            access: KafkaAccess(configuration), group: worker.group, notifiers: notifiers
        ).findings()
        async let redis = RedisCheck(endpoint: worker.redis).findings()
        async let store = ResultStoreCheck(configuration: configuration).findings()
        async let codecs = CodecCheck().findings()
        let machine = HostCheck(
            fetches: worker.fetches, concurrency: worker.concurrency, memoryLimit: worker.memoryLimit)
        async let detector = machine.detector(configuration.detector)
        let host = await [machine.libraries, machine.videos, detector]
        let findings = try await kafka + redis + store + host + codecs + machine.limits
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

/// The finding of one check.
struct DoctorReport: Sendable {
    /// The severity of a finding.
    enum Level: String, Sendable {
        case ok, warning, broken
    }

    let level: Level
    /// The subject of the check, such as `Redis`.
    let subject: String
    let message: String
    /// The suggested fix, or nil if there is no problem.
    let remedy: String?

    static func ok(_ subject: String, _ message: String) -> DoctorReport {
        DoctorReport(level: .ok, subject: subject, message: message, remedy: nil)
    }
    static func warning(_ subject: String, _ message: String, mend remedy: String) -> DoctorReport {
        DoctorReport(level: .warning, subject: subject, message: message, remedy: remedy)
    }
    static func broken(_ subject: String, _ message: String, mend remedy: String) -> DoctorReport {
        DoctorReport(level: .broken, subject: subject, message: message, remedy: remedy)
    }

    /// A text line, with the remedy on a separate line.
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

extension DoctorReport: JSONWritable {
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("level", level.rawValue)
            writer.member("subject", subject)
            writer.member("message", message)
            writer.member("remedy", remedy)
        }
    }
}
