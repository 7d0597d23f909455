/// Checks the images of `ready` events. An image is wrong if most events about the same image have another SHA-256, or if
/// an event does not have as many outputs as its job.
struct ImageAudit: Sendable {
    /// The events with a wrong image.
    let wrong: [(job: SentJob, ends: [TerminalEvent])]

    init(sent: [SentJob], ends: [String: [TerminalEvent]]) {
        let told = sent.lazy.filter { !$0.outputs.isEmpty }.map { job in
            (job: job, ends: ends[job.place, default: []].filter { $0.end == "ready" })
        }
        var counts: [String: [String: Int]] = [:]
        for (job, ends) in told {
            for end in ends {
                for (name, output) in zip(job.outputs, end.outputs) {
                    counts[name, default: [:]][output.sha256, default: 0] += 1
                }
            }
        }
        // Of equally frequent ones, the choice must not depend on the order of the dictionary.
        let right = counts.mapValues { $0.max { ($0.value, $0.key) < ($1.value, $1.key) }!.key }
        wrong = told.compactMap { job, ends in
            let wrong = ends.filter { $0.outputs.map(\.sha256) != job.outputs.map { right[$0] } }
            return wrong.isEmpty ? nil : (job, wrong)
        }
    }
}
