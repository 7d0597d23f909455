import TestSupport
import Testing

/// The spans that a collector has received.
struct Spans {
    let all: [TraceCollector.Span]

    /// The spans of the jobs themselves.
    var jobs: [TraceCollector.Span] { named("halcyon.job") }

    func named(_ name: String) -> [TraceCollector.Span] { all.filter { $0.name == name } }

    func job(_ id: String) throws -> TraceCollector.Span {
        let found = jobs.filter { $0.attributes["halcyon.job.id"] == .string(id) }
        try #require(found.count == 1, "\(found.count) spans of job \(id)")
        return found[0]
    }

    func children(of span: TraceCollector.Span) -> [TraceCollector.Span] {
        all.filter { $0.trace == span.trace && $0.parent == span.id }
    }

    /// Returns the names of the child spans of a job, in the order in which they started.
    func stages(of id: String) throws -> [String] {
        children(of: try job(id)).sorted { ($0.start, $0.end) < ($1.start, $1.end) }.map(\.name)
    }

    /// Checks the invariants of all traces: ids are unique, parents and links exist, and no span exceeds its parent.
    /// - Parameter known: The `trace-id` of spans that were created by others.
    func check(knowing known: Set<String> = []) {
        let byPlace = Dictionary(grouping: all, by: \.place)
        #expect(byPlace.values.allSatisfy { $0.count == 1 })
        for span in all {
            #expect(span.start <= span.end && span.start > 1_700_000_000_000_000_000)
            #expect(span.resource["service.name"] == "halcyon" && span.scope == "halcyon")
            for link in span.links {
                #expect(byPlace[link] != nil, "\(span.name) links to \(link), which does not exist")
            }
            let parent = "\(span.trace)-\(span.parent)"
            if span.name == "halcyon.job" {
                #expect(span.kind == 5 && span.attributes["messaging.system"] == "kafka")
                #expect(span.parent.isEmpty || known.contains(parent) || byPlace[parent] != nil)
            } else if let parent = byPlace[parent]?.first {
                #expect(
                    parent.start <= span.start && span.end <= parent.end, "\(span.name) is outside of \(parent.name)")
            } else {
                Issue.record("\(span.name) has a parent that does not exist")
            }
        }
    }
}
