import Concurrency
import Foundation
import HalcyonCluster
import Kafka
import TestSupport

/// All events of a cluster, read by a separate reader and parsed with Foundation's JSON.
final class EventLog: Sendable {
    /// One event.
    struct Entry: @unchecked Sendable {  // JSONSerialization's dictionaries are never changed
        let json: [String: Any]
        // Kept, because tests that wait ask for them often.
        let kind: String
        let jobID: String
        let isTerminal: Bool

        init(_ json: [String: Any]) {
            self.json = json
            kind = (json["type"] as? String ?? "").replacingOccurrences(of: "halcyon.image.", with: "")
            let data = json["data"] as? [String: Any]
            jobID = (data?["job"] as? [String: Any])?["id"] as? String ?? ""
            isTerminal = ["ready", "failed", "cancelled", "superseded"].contains(kind)
        }

        var data: [String: Any] { json["data"] as? [String: Any] ?? [:] }
        var code: String? { data["code"] as? String }
        var message: String { data["message"] as? String ?? "" }
        var key: String { data["key"] as? String ?? "" }
        var origin: String? { data["origin"] as? String }
        var variants: [[String: Any]] { data["variants"] as? [[String: Any]] ?? [] }
        var variant: [String: Any] { variants.first ?? [:] }
    }

    private let entries = Lock<[Entry]>([])
    private let reader: TopicReader
    private let task: Task<Void, Never>

    /// Reads the topic from its beginning.
    init(_ topics: Topics, _ properties: [String: String]) async throws {
        let reader = try await TopicReader.open(
            topics.events, from: .beginning, properties: properties, within: .patience)
        let entries = entries
        self.reader = reader
        task = Task {
            do {
                for try await record in reader {
                    let json = try JSONSerialization.jsonObject(with: Data(record.value ?? [])) as? [String: Any]
                    let entry = Entry(json ?? [:])
                    entries.withLock { $0.append(entry) }
                }
            } catch {}
        }
    }

    var all: [Entry] { entries.withLock { $0 } }
    var terminal: [Entry] { all.filter(\.isTerminal) }

    /// Waits for the terminal event of a job and returns it.
    func terminal(of id: String, within limit: Duration = .patience) async throws -> Entry {
        try await until("a terminal event of \(id)", within: limit) { self.terminal.contains { $0.jobID == id } }
        return terminal.first { $0.jobID == id }!
    }

    func close() async {
        task.cancel()
        await reader.close()
    }
}
