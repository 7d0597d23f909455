import HalcyonModel

extension JobContext {
    /// Calls `body` with the job and, while sources fail, with the job with each of its alternatives.
    /// - Parameters:
    ///   - cached: The cached results of the job's own source.
    ///   - lookup: The stage that looks up the results of alternatives.
    ///   - body: The work on one source, with its cached results.
    /// - Throws: ``JobError`` if all sources fail: the first failure that a retry may fix, otherwise that of the job's
    ///   own source.
    func firstSource(
        _ cached: [ResultKey: ImageResult], _ lookup: LookupStage,
        _ body: (JobContext, [ResultKey: ImageResult]) async throws -> Ready
    ) async throws -> Ready {
        var failures: [JobError] = []
        do {
            return try await body(self, cached)
        } catch let error as JobError where error.code.isOfSource && !job.alternatives.isEmpty {
            failures.append(error)
        }
        for source in alternatives {
            do {
                let (cached, origin) = try await lookup.find(source)
                var ready: Ready
                if let found = source.ready(from: cached, origin) {
                    ready = found
                } else {
                    ready = try await body(source, cached)
                }
                ready.alternative = source.job.source.shownText
                return ready
            } catch let error as JobError where error.code.isOfSource {
                failures.append(error.within("alternatives[\(failures.count - 1)]"))
            }
        }
        var failure = failures.first(where: \.isRetryable) ?? failures[0]
        let others = failures.dropFirst().map { $0.code.rawValue }.joined(separator: ", ")
        failure.message += "; no alternative source succeeded (\(others))"
        throw failure
    }
}
