import Arguments
import CivilTime
import HalcyonCluster

extension LetterView {
    /// One line for people.
    var line: String {
        let attempts = letter.history.map { counted($0.count, "attempt") }
        let facts = [
            "\(letter.id)", time, Console.red(letter.code), attempts, webhook.map { "webhook \($0)" }, job, source,
            isReplayed ? "replayed" : nil,
        ]
        return facts.compactMap(\.self).joined(separator: "  ")
    }

    /// All there is, for people.
    var text: String {
        var lines = ["\(letter.id)  \(time)  \(Console.red(letter.code)): \(letter.message)"]
        func add(_ name: String, _ value: String?) {
            if let value { lines.append("  \(name.padded(to: 10))\(value)") }
        }
        add("webhook", webhook)
        add("job", job)
        add("source", source)
        add("tenant", tenant)
        add("from", letter.provenance.map { "\($0.coordinates), \(Timestamp(milliseconds: $0.submitted).rfc3339)" })
        add("reason", letter.reason?.rawValue)
        add("replays", letter.replays > 0 ? "\(letter.replays)" : nil)
        add("replayed", isReplayed ? "yes" : nil)
        for header in letter.headers { add("header", "\(header.name): \(Self.text(header.value ?? []))") }
        if let history = letter.history {
            add("attempts", "\(history.count)")
            for attempt in history.attempts {
                lines.append(
                    "    \(Timestamp(milliseconds: attempt.moment).rfc3339)  \(attempt.code.rawValue): \(attempt.message)"
                )
            }
        }
        if let key = letter.record.key { add("key", Self.text(key)) }
        add("message", Self.text(letter.record.value ?? []))
        return lines.joined(separator: "\n")
    }
}
