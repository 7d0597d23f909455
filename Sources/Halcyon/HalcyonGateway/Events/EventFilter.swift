/// Which events a stream is to have: of each member that is named one of its values, and all of the members. A pure value.
struct EventFilter: Hashable, Sendable {
    /// Behind the prefix `halcyon.image.`.
    var types: Set<String> = []
    /// The bytes of ids of jobs: equal strings of Swift may be different ids.
    var jobs: Set<[UInt8]> = []
    /// The bytes of sources, as events have them.
    var sources: Set<[UInt8]> = []

    /// Whether a stream has it. Without a filter nothing is parsed.
    func lets(_ record: FeedRecord) -> Bool {
        if types.isEmpty && jobs.isEmpty && sources.isEmpty { return true }
        guard let facts = record.facts else { return false }
        return (types.isEmpty || types.contains(facts.type))
            && (jobs.isEmpty || facts.jobID.map { jobs.contains(Array($0.utf8)) } == true)
            && (sources.isEmpty || facts.subject.map { sources.contains(Array($0.utf8)) } == true)
    }
}
