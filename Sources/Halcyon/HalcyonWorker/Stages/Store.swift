import HalcyonCluster
import HalcyonImaging
import HalcyonModel
import HalcyonSources
import Redis
import Telemetry

/// Puts the result where its consumers find it: in the result tier for as long as it is fresh, and else in the event itself or
/// under a key that only the event names.
struct Store: Sendable {
    let results: ResultTier
    let options: ResultOptions
    let log: Log

    /// Where a result was put.
    struct Placement: Sendable {
        var key: String
        var expiresAt: Double?
        var inline: [UInt8]?
    }

    /// - Throws: `CancellationError`, nothing else: while Redis is away it waits, unless the event can carry the file.
    func store(_ image: RenderedImage, _ facts: ResultFacts, from source: LoadedSource, _ work: Work) async throws
        -> Placement
    {
        let fits = image.body.count <= options.inlineLimit
        let inline = fits && work.job.delivery == .inline ? image.body : nil
        let lifetime = ResultLifetime(
            maxAge: work.job.maxAge, headers: source.headers, completedAt: source.completedAt)
        let seconds: Double
        var key = work.key.description
        switch lifetime {
        case .seconds(let given): seconds = given
        case .standard: seconds = options.defaultLifetime
        case .notStored where fits: return Placement(key: key, inline: image.body)
        case .notStored:
            key = ResultTier.handOffKey(for: work.key)
            seconds = options.handOffLifetime
        }
        let giveUpAt = ContinuousClock.now + options.patience
        var pause = Duration.milliseconds(50)
        while true {
            do {
                let expiresAt = try await results.store(image.body, facts, as: key, for: seconds)
                return Placement(key: key, expiresAt: expiresAt, inline: inline)
            } catch {
                if fits, !error.isRetriable || .now >= giveUpAt {
                    log.warning("result not stored, delivered in its event", ["key": key, "error": "\(error)"])
                    return Placement(key: work.key.description, inline: image.body)
                }
            }
            try await Task.sleep(for: pause)
            pause = min(pause * 2, .seconds(2))
        }
    }
}
