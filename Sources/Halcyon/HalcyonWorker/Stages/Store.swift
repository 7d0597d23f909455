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

    /// While Redis is away it waits, and after a while lets the event carry the image if it can.
    /// - Throws: ``Failure`` `internal` when Redis refuses an image that is too large for an event; `CancellationError` when the
    ///   worker is leaving.
    func store(
        _ image: RenderedImage, _ facts: ResultFacts, from source: LoadedSource, _ work: Work
    ) async throws -> Placement {
        let fits = image.body.count <= options.inlineLimit
        let lifetime = ResultLifetime(
            maxAge: work.job.maxAge, headers: source.headers, completedAt: source.completedAt)
        let (key, seconds): (String, Double)
        switch lifetime {
        case .seconds(let given): (key, seconds) = (work.key.description, given)
        case .standard: (key, seconds) = (work.key.description, options.defaultLifetime)
        case .notStored where fits: return Placement(key: work.key.description, inline: image.body)
        case .notStored: (key, seconds) = (ResultTier.handOffKey(for: work.key), options.handOffLifetime)
        }
        do throws(RedisError) {
            let expiresAt = try await keepStoring(image.body, facts, as: key, for: seconds, untilDone: !fits)
            return Placement(
                key: key, expiresAt: expiresAt, inline: fits && work.job.delivery == .inline ? image.body : nil)
        } catch {
            switch error.code {
            case .cancelled, .closed: throw CancellationError()
            case _ where fits:
                log.warning("result not stored, delivered in its event", ["key": key, "error": "\(error)"])
                return Placement(key: work.key.description, inline: image.body)
            default: throw Failure(.internal, "the result could not be stored: \(error)")
            }
        }
    }

    /// Tries again while time mends the error: for as long as the options say, or until it is done.
    private func keepStoring(
        _ body: [UInt8], _ facts: ResultFacts, as key: String, for seconds: Double, untilDone: Bool
    ) async throws(RedisError) -> Double {
        let giveUpAt = ContinuousClock.now + options.patience
        var pause = Duration.milliseconds(50)
        while true {
            do throws(RedisError) {
                return try await results.store(body, facts, as: key, for: seconds)
            } catch {
                guard error.isRetriable, untilDone || .now < giveUpAt else { throw error }
            }
            do {
                try await Task.sleep(for: pause)
            } catch {
                throw RedisError(.cancelled, "the task was cancelled")
            }
            pause = min(pause * 2, .seconds(2))
        }
    }
}
