import Formats
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import ProgramSettings

/// `halcyon events`: follows the events of jobs and batches.
enum EventsCommand: Subcommand {
    private static let source = Parameter<String?>.option(
        "source", .text, as: "URL", help: "Print only events of jobs for this source.")
    private static let job = Parameter<String?>.option("job", .text, as: "ID", help: "Print only events of this job.")
    private static let batch = Parameter<String?>.option(
        "batch", .batchID, as: "ID", help: "Print only events of this batch and its jobs.")
    private static let types = Parameter<[String]>.repeated(
        "type", .eventType, as: "TYPE", help: "Print only events of this type. Repeatable.")
    private static let since = Parameter<Beginning>.option(
        "since", .beginning, as: "WHEN", default: .now,
        help: "Where to start: now, beginning, an age such as 10m, or a date and time. Default: now.")
    private static let limit = Parameter<Int?>.option(
        "limit", .integer(in: 1 ... .max), as: "N", help: "Exit after N events.")
    private static let json = Parameter.flag(
        "json", help: "Accepted for consistency. Events are always printed as JSON.")

    static let command = Command(
        "events", summary: "Follow events as JSON, one object per line, until Ctrl-C.",
        parameters: [source, job, batch, types, since, limit, json],
        examples: [
            .init("halcyon events | jq .data.key", "Print the keys of new results."),
            .init("halcyon events --type failed --since 1h", "Print failures since one hour ago."),
            .init(
                "halcyon events --job article-17-hero --type ready --type failed --limit 1",
                "Wait until a job has ended."),
            .init(
                "halcyon events --batch summer-catalogue --type batch.progress --type batch.completed",
                "Follow a batch."),
        ])

    static let connection = Connection.kafka

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let access = KafkaAccess(try Configuration(arguments))
        let metadata = try await access.metadata(until: nil)
        try access.require([access.topics.events], in: metadata)
        let reader = try await TopicReader.open(
            access.topics.events, from: arguments[since].start, properties: access.properties.reader,
            events: access.notices)
        try await closing({ await reader.close() }) { try await follow(reader, arguments) }
        return .done
    }

    private static func follow(_ reader: TopicReader, _ arguments: ParsedCommand) async throws {
        var left = arguments[limit] ?? .max
        // Not every broker can look up offsets by time (TopicReader.Start), so older records are skipped here too.
        let oldest = arguments[since].oldest
        for try await record in reader where record.timestamp >= oldest {
            guard let value = record.value, let event = EventAttributes(json: value), isWanted(event, arguments) else {
                continue
            }
            guard Console.print(json: value.onOneLine) else { return }
            left -= 1
            if left == 0 { return }
        }
    }

    private static func isWanted(_ event: EventAttributes, _ arguments: ParsedCommand) -> Bool {
        (arguments[source].map { isSame($0.withoutCredentials, event.subject) } ?? true)
            && (arguments[job].map { isSame($0, event.jobID) } ?? true)
            && (arguments[batch].map { isSame($0, event.batch) } ?? true)
            && (arguments[types].isEmpty || arguments[types].contains(event.type))
    }

    /// Compares bytes, because equal Swift strings can have different bytes.
    private static func isSame(_ wanted: String, _ text: String?) -> Bool {
        text?.utf8.elementsEqual(wanted.utf8) ?? false
    }
}

/// The position at which following events begins.
private enum Beginning: Sendable {
    case now
    case beginning
    /// Milliseconds since 1970.
    case at(Int64)

    var start: TopicReader.Start {
        switch self {
        case .now: .end
        case .beginning: .beginning
        case .at(let milliseconds): .timestamp(milliseconds)
        }
    }

    var oldest: Int64 { if case .at(let milliseconds) = self { milliseconds } else { .min } }
}

extension ValueKind<Beginning> {
    fileprivate static var beginning: Self {
        ValueKind("now, beginning, a duration such as 10m, or a date and time such as 2026-12-24T18:00:00Z") {
            text in
            switch text {
            case "now": return .now
            case "beginning": return .beginning
            default:
                if let span = ValueKind<Duration>.duration().value(of: text) {
                    return .at(Timestamp.now.milliseconds - Int64(span.milliseconds))
                }
                return Timestamp(rfc3339: text).map { .at($0.milliseconds) }
            }
        }
    }
}

extension ValueKind<String> {
    /// A CloudEvents type, or its short name.
    fileprivate static var eventType: Self {
        let words = EventAttributes.typeNames
        return ValueKind("one of \(words.joined(separator: ", "))", completion: .words(words)) {
            EventAttributes.type(named: $0)
        }
    }
}
