/// Which events a stream is to have: of each member that is named one of its values, and all of the members. A pure value.
struct EventFilter: Hashable, Sendable {
    /// Behind the prefix `halcyon.image.`.
    var types: Set<String> = []
    /// Ids of jobs.
    var jobs: Set<String> = []
    /// Sources, as the jobs gave them.
    var sources: Set<String> = []

    /// Whether a stream has it. Without a filter nothing is parsed.
    func lets(_ record: FeedRecord) -> Bool {
        if types.isEmpty && jobs.isEmpty && sources.isEmpty { return true }
        guard let facts = record.facts else { return false }
        return (types.isEmpty || types.contains(facts.type))
            && (jobs.isEmpty || facts.jobID.map(jobs.contains) == true)
            && (sources.isEmpty || facts.subject.map(sources.contains) == true)
    }
}
