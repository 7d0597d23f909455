import CivilTime
import HalcyonCluster
import HalcyonImaging
import HalcyonModel
import HalcyonSources
import HalcyonWire
import Kafka
import Telemetry
import Threads

/// The line that a job goes down, once: read it from top to bottom.
///
///     taken ─▶ intake ─▶ lookup ─▶ fetch ─▶ render ─▶ store ─▶ publish ─▶ ended
///
/// Failure is a value: whatever stage a job stops at, one place turns the outcome into its event.
struct Line: Sendable {
    let intake: Intake
    let lookup: Lookup
    let fetch: Fetch
    let render: Render
    let store: Store
    let publish: Publish
    let metrics: WorkerMetrics
    let log: Log

    /// Does one job, from its record to its published event; then its offset may be passed.
    func run(_ taken: TakenRecord) async {
        do throws(KafkaError) {
            let work: Work
            do throws(JobRefusal) {
                work = try read(taken.record)
            } catch {
                try await publish.refused(taken.record, error)
                metrics.refused()
                log.warning(
                    "job refused",
                    ["job": error.id, "code": error.failure.code.rawValue, "reason": error.failure.message])
                taken.end()
                return
            }
            guard let body = await outcome(of: work, taken) else {
                taken.handBack()
                return
            }
            try await publish.ended(work, body)
            report(work, body)
            taken.end()
        } catch {
            // The producer is closed: the worker is gone, and the job is not done.
            log.error("event not published", ["error": "\(error)"])
            taken.handBack()
        }
    }

    private func read(_ record: ConsumedRecord) throws(JobRefusal) -> Work {
        let (work, unknownFields) = try intake.read(record)
        if !unknownFields.isEmpty {
            metrics.unknownFields.add(unknownFields.count)
            log.info("unknown fields ignored", fields(of: work, ["fields": unknownFields.joined(separator: " ")]))
        }
        return work
    }

    /// What the job ends with; nil when it is handed back.
    private func outcome(of work: Work, _ taken: TakenRecord) async -> Event.Body? {
        var timings = Timings()
        timings[.queued] = max(0, (Timestamp.now.seconds - work.origin.submitted) * 1000)
        do {
            var ready = try await result(of: work, taken, &timings)
            timings[.total] = work.takenAt.duration(to: .now).milliseconds
            ready.timings = timings
            return .ready(ready)
        } catch is CancellationError {
            return nil
        } catch {
            let failure = (error as? Failure) ?? Failure(.internal, "\(error)")
            timings[.total] = work.takenAt.duration(to: .now).milliseconds
            return .failed(failure, attempts: 1, timings: timings)
        }
    }

    private func result(of work: Work, _ taken: TakenRecord, _ timings: inout Timings) async throws -> Ready {
        try work.checkDeadline()
        let found = try await lookup.find(work)
        let missing = work.missing(from: found)
        if missing.isEmpty {
            guard taken.begin() else { throw CancellationError() }
            return Ready(results: work.keys.compactMap { found[$0] }, origin: .memory, timings: timings)
        }
        let (rendering, fetched) = try await rendering(of: missing, of: work, taken, &timings)
        var stopwatch = Stopwatch()
        let made = zip(missing, rendering.images).map { place, image in
            Store.Made(
                key: work.keys[place], image: image, facts: ResultFacts(image, of: rendering, from: fetched.source))
        }
        let results = try await store.store(made, beside: found, from: fetched.source, work)
        timings[.store] = stopwatch.lap()
        return Ready(results: work.keys.compactMap { results[$0] }, origin: fetched.origin, timings: timings)
    }

    /// Makes the variants at these places.
    private func rendering(
        of places: [Int], of work: Work, _ taken: TakenRecord, _ timings: inout Timings
    ) async throws -> (Rendering, from: Fetched) {
        let fetched = try await load(places, of: work, taken, &timings)
        defer { render.places.release() }
        try work.checkDeadline()
        let rendering = try await render.render(fetched, places, of: work)
        timings[.decode] = rendering.timings.decode.milliseconds
        timings[.process] = rendering.timings.process.milliseconds
        timings[.encode] = rendering.timings.encode.milliseconds
        return (rendering, fetched)
    }

    /// Loads what these variants need, and gets it a place of the renderer, which the caller gives back.
    ///
    /// The place of a fetch is given up only then: no more sources than there are such places are ever in memory, however slow
    /// rendering is; and a slow origin holds no place of the renderer. Who waits for an origin's turn holds none at all.
    private func load(
        _ places: [Int], of work: Work, _ taken: TakenRecord, _ timings: inout Timings
    ) async throws -> Fetched {
        var stopwatch = Stopwatch()
        let place = Place(of: fetch.places)
        try await place.acquire()
        defer { place.release() }
        guard taken.begin() else { throw CancellationError() }
        timings[.waited] = stopwatch.lap()
        try work.checkDeadline()
        async let started: Void = publish.started(work)
        let fetched = try await fetch.fetch(places, of: work, holding: place)
        await started
        timings[.fetch] = stopwatch.lap()
        try await render.places.acquire()
        return fetched
    }

    private func report(_ work: Work, _ body: Event.Body) {
        metrics.ended(body)
        switch body {
        case .ready(let ready):
            log.debug("job ready", fields(of: work, ["origin": ready.origin.rawValue, "ms": ready.timings[.total]]))
        case .failed(let failure, _, _):
            log.info("job failed", fields(of: work, ["code": failure.code.rawValue, "reason": failure.message]))
        case .started: break
        }
    }

    /// What every line about a job carries, and then `more`.
    private func fields(of work: Work, _ more: LogFields) -> LogFields {
        let trace = work.traceparent.flatMap { TraceContext(traceparent: $0) }?.traceID
        let common: LogFields = ["job": work.job.id, "key": work.keys[0].description, "trace": trace]
        return common.merging(more)
    }
}
