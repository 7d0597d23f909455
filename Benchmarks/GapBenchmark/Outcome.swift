/// A job with the times of its submission and of its terminal event.
struct Job: Sendable {
    let partition: Int32
    let submitted: ContinuousClock.Instant
    /// Nil for a job that did not end.
    let ended: ContinuousClock.Instant?
}

/// The figures of a scenario, in seconds.
struct Outcome: Sendable {
    /// The longest time without a terminal event.
    let silence: Double
    /// The longest time from submission to terminal event of jobs in partitions of workers that were left alone; nil
    /// without any.
    let others: Double?
    /// The same of jobs in partitions of workers that were not.
    let affected: Double?
    /// The number of jobs that have ended.
    let ended: Int

    init(_ jobs: [Job], _ disruptions: [Disruption]) {
        let ends = jobs.compactMap(\.ended).sorted()
        ended = ends.count
        silence = zip(ends, ends.dropFirst()).map { $0.duration(to: $1) / .seconds(1) }.max() ?? 0
        var (others, affected): ([Double], [Double]) = ([], [])
        for job in jobs {
            guard let end = job.ended else { continue }
            let duration = job.submitted.duration(to: end) / .seconds(1)
            // Of several disruptions the one before its end may have delayed it.
            if disruptions.last(where: { $0.time < end })?.partitions.contains(job.partition) == true {
                affected.append(duration)
            } else {
                others.append(duration)
            }
        }
        (self.others, self.affected) = (others.max(), affected.max())
    }
}
