import Hashing
import JSON
import Kafka

/// Reads job events as a read-committed consumer and adds them to the ledger.
///
/// A record is added once, even if the reader is restarted. An event that was published twice is added twice.
struct EventFollower {
    let brokers: String
    let topic: String
    let ledger: Ledger

    private static let terminal: Set = ["ready", "failed", "cancelled", "superseded"]

    /// Reads the topic from the beginning until the task is cancelled.
    func run() async {
        var next: [Int32: Int64] = [:]
        while !Task.isCancelled {
            do {
                let reader = try await TopicReader.open(
                    topic, from: .beginning,
                    properties: ["bootstrap.servers": brokers, "isolation.level": "read_committed"])
                do {
                    for try await record in reader where record.offset >= next[record.partition, default: 0] {
                        next[record.partition] = record.offset + 1
                        let value = record.value ?? []
                        if let event = Self.event(value, at: ledger.now) { ledger.add(event) }
                        if let completion = Self.completion(value) { ledger.add(completion) }
                    }
                } catch {
                    say("event reader failed, restarting: \(error)")
                }
                await reader.close()
            } catch {
                try? await Task.sleep(for: .milliseconds(500))
            }
        }
    }

    /// Parses a terminal event; nil for any other event.
    static func event(_ value: [UInt8], at now: Double) -> TerminalEvent? {
        guard let json = try? JSON.parse(value, maximumSize: 2 << 20, maximumDepth: 64),
            let type = try? json.member("type")?.string(), let id = try? json.member("id")?.string(),
            let kind = type.split(separator: ".").last, terminal.contains(String(kind))
        else { return nil }
        let data = json.member("data")
        let code = try? data?.member("code")?.string()
        let message = try? data?.member("message")?.string()
        var outputs: [TerminalEvent.Output] = []
        try? data?.member("variants")?.forEachElement { variant in
            outputs.append(
                TerminalEvent.Output(key: variant.member("key")?.asString ?? "", sha256: digest(of: variant)))
        }
        return TerminalEvent(
            id: id, end: kind == "failed" ? "failed/\(code ?? "?")" : String(kind), message: message ?? "",
            origin: data?.member("origin")?.asString, outputs: outputs, at: now)
    }

    /// Parses the completion event of a batch; nil for any other event.
    static func completion(_ value: [UInt8]) -> BatchCompletion? {
        guard let json = try? JSON.parse(value, maximumSize: 2 << 20, maximumDepth: 64),
            json.member("type")?.asString == "halcyon.batch.completed",
            let batch = json.member("data")?.member("batch"),
            let id = batch.member("id")?.asString
        else { return nil }
        var counts: [String: Int] = [:]
        for outcome in terminal { counts[outcome] = batch.member("counts")?.member(outcome)?.asInteger.map { Int($0) } }
        return BatchCompletion(batch: id, counts: counts)
    }

    /// The SHA-256 of the bytes of an output, or else the one that the event states.
    private static func digest(of variant: JSONElement) -> String {
        if let bytes = variant.member("data")?.asString.flatMap({ Base64.decode($0) }) {
            return SHA256.hash(bytes).description
        }
        return variant.member("sha256")?.asString ?? "none"
    }
}
