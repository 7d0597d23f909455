import HalcyonImaging
import HalcyonLeases
import HalcyonModel
import HalcyonRendering
import HalcyonSources
import Threads

/// Makes results from their source: fetches it and renders. What it makes is stored elsewhere.
struct Make: Sendable {
    let fetch: Fetch
    let render: Render
    let memory: ResultMemory

    /// Makes some of a job's variants from one decoding.
    ///
    /// The place of a fetch is given up only when there is one of the renderer: no more sources than there are such places are ever in
    /// memory, however slow rendering is; and a slow origin holds no place of the renderer. What a large source takes beside it is given
    /// back with the bytes.
    /// - Parameters:
    ///   - places: where in the job they stand.
    ///   - isolation: where they may be rendered.
    ///   - onBegin: called when the source is there, or its origin is about to be asked.
    /// - Throws: ``Failure``, about one of the variants or all of them; `CancellationError`.
    func make(
        _ places: [Int], of work: Work, fences: [Int], urgency: Urgency,
        isolation: RenderService.Isolation = .whereNeeded, onBegin: @escaping @Sendable () -> Bool
    ) async throws -> [Made] {
        var timings = Timings()
        let begun = Lock(ContinuousClock.now)
        let fetched: Fetched
        do {
            fetched = try await fetch.fetch(places, of: work, urgency: urgency) {
                begun.withLock { $0 = .now }
                return onBegin()
            }
        } catch {
            work.trace?.failedToFetch(work.job.request, Lap(from: begun.withLock { $0 }), error)
            throw error
        }
        let lap = Lap(from: begun.withLock { $0 })
        timings[.fetch] = lap.milliseconds
        work.trace?.fetched(fetched, work.job.request, lap)
        try await render.places.acquire(urgency)
        defer { render.places.release() }
        fetched.place?.releaseOwn()
        let start = ContinuousClock.now
        let rendering: Rendering
        do {
            rendering = try await render.render(fetched, places, of: work, isolation)
        } catch {
            work.trace?.add(.render, Lap(from: start), error: error)
            throw error
        }
        work.trace?.rendered(rendering.timings, Lap(from: start))
        timings[.decode] = rendering.timings.decode.milliseconds
        timings[.process] = rendering.timings.process.milliseconds
        timings[.encode] = rendering.timings.encode.milliseconds
        return places.indices.map { index in
            let image = rendering.images[index]
            return Made(
                key: work.keys[places[index]], image: image, memory: memory.hold(image.body.count),
                facts: ResultFacts(image, of: rendering, from: fetched.source), headers: fetched.source.headers,
                completedAt: fetched.source.completedAt, origin: fetched.origin, timings: timings, fence: fences[index],
                since: min(fences[index], fetched.fence ?? .max), maker: work.trace?.context)
        }
    }
}
