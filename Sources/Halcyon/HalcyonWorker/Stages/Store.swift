import HalcyonCluster
import HalcyonImaging
import HalcyonModel
import HalcyonSources
import Redis
import Telemetry

/// Puts results where their consumers find them: in the result tier for as long as they are fresh, and else in the event itself or
/// under a key that only the event names. Each variant is kept by the same rules.
struct Store: Sendable {
    let results: ResultTier
    let options: ResultOptions
    let log: Log

    /// An output that was made for a job.
    struct Made: Sendable {
        let key: ResultKey
        let image: RenderedImage
        let facts: ResultFacts
    }

    /// Stores all that was made for a job, side by side.
    ///
    /// - Parameter found: what was there already; an event that cannot carry all of its files carries none.
    /// - Throws: as ``store(_:from:_:fits:)``; then nothing is told of the others.
    func store(
        _ made: [Made], beside found: [ResultKey: ReadyResult], from source: LoadedSource, _ work: Work
    ) async throws -> [ResultKey: ReadyResult] {
        let fits = bytesToCarry(made, beside: found, work) <= options.inlineLimit
        var results = found
        if !fits { for key in found.keys { results[key]?.inline = nil } }
        if made.count == 1 {
            results[made[0].key] = try await store(made[0], from: source, work, fits: fits)
            return results
        }
        return try await withThrowingTaskGroup(of: (ResultKey, ReadyResult).self) { group in
            for output in made {
                group.addTask { (output.key, try await store(output, from: source, work, fits: fits)) }
            }
            for try await (key, result) in group { results[key] = result }
            return results
        }
    }

    /// Bytes of the files that the event would have to carry, each as often as it has a variant with it.
    private func bytesToCarry(_ made: [Made], beside found: [ResultKey: ReadyResult], _ work: Work) -> Int {
        var bytes = Dictionary(uniqueKeysWithValues: made.map { ($0.key, $0.image.body.count) })
        if work.job.delivery == .inline { for (key, result) in found { bytes[key] = result.facts.bytes } }
        return work.keys.reduce(0) { $0 + (bytes[$1] ?? 0) }
    }

    /// While Redis is away it waits, and after a while lets the event carry the image if it can.
    /// - Parameter fits: whether the event can carry the image.
    /// - Throws: ``Failure`` `internal` when Redis refuses an image that is too large for an event; `CancellationError` when the
    ///   worker is leaving.
    private func store(
        _ made: Made, from source: LoadedSource, _ work: Work, fits: Bool
    ) async throws -> ReadyResult {
        let body = made.image.body
        let name = made.key.description
        func result(_ key: String, _ expiresAt: Double?, _ inline: [UInt8]?) -> ReadyResult {
            ReadyResult(key: key, facts: made.facts, expiresAt: expiresAt, inline: inline)
        }
        let lifetime = ResultLifetime(
            maxAge: work.job.maxAge, headers: source.headers, completedAt: source.completedAt)
        let (key, seconds): (String, Double)
        switch lifetime {
        case .seconds(let given): (key, seconds) = (name, given)
        case .standard: (key, seconds) = (name, options.defaultLifetime)
        case .notStored where fits: return result(name, nil, body)
        case .notStored: (key, seconds) = (ResultTier.handOffKey(for: made.key), options.handOffLifetime)
        }
        do throws(RedisError) {
            let expiresAt = try await keepStoring(body, made.facts, as: key, for: seconds, untilDone: !fits)
            return result(key, expiresAt, fits && work.job.delivery == .inline ? body : nil)
        } catch {
            switch error.code {
            case .cancelled, .closed: throw CancellationError()
            case _ where fits:
                log.warning("result not stored, delivered in its event", ["key": key, "error": "\(error)"])
                return result(name, nil, body)
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
