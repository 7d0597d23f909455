import Concurrency
import HalcyonCluster
import HalcyonModel

/// Handles the point at which this worker commits to a job. Publishes its `started` and progress events.
final class StartNotifier: Sendable {
    private struct State {
        /// The job with the source that is being loaded.
        var current: JobContext
        var moment: ContinuousClock.Instant?
        var publishing: Task<Void, Never>?
        var reporting: Task<Void, Never>?
        var isOver = false
    }

    private let delivery: JobDelivery
    private let job: JobContext
    /// The number of the attempt, from 1.
    private let attempt: Int
    private let publisher: PublishStage
    private let progress: ProgressReports
    private let state: Lock<State>

    init(
        _ delivery: JobDelivery, _ job: JobContext, _ attempt: Int, _ publisher: PublishStage,
        _ progress: ProgressReports
    ) {
        self.delivery = delivery
        self.job = job
        self.attempt = attempt
        self.publisher = publisher
        self.progress = progress
        state = Lock(State(current: job))
    }

    /// Reports the progress of this source from now on.
    func follow(_ source: JobContext) { state.withLock { $0.current = source } }

    /// Claims the job. A revoked job always leaves. A job that joined an operation in flight gets progress events only.
    /// A job that accepts only cached results may end at once.
    /// - Parameter isOwn: True if the job's own operation has started.
    /// - Returns: True if the job stays.
    func start(isOwn: Bool) -> Bool {
        guard delivery.claim() else { return false }
        state.withLock { state in
            // An operation may call this just after the job has left it.
            if state.isOver { return }
            if isOwn, state.moment == nil {
                state.moment = .now
                if !job.job.cache.onlyIfCached, job.start() {
                    state.publishing = Task { [job, publisher] in await publisher.started(job) }
                }
            }
            if state.reporting == nil {
                state.reporting = progress.begin(job, attempt) { [state = self.state] in state.withLock { $0.current } }
            }
        }
        return true
    }

    /// The stage of the job, for lists of jobs in flight.
    var stage: JobDescription.Stage {
        let (current, moment, isOver) = state.withLock { ($0.current, $0.moment, $0.isOver) }
        if isOver { return .delivering }
        if progress.render.progress(of: current) != nil { return .loading }
        return moment == nil ? .waiting : .rendering
    }

    /// The time at which the job's own operation started.
    var moment: ContinuousClock.Instant? { state.withLock { $0.moment } }

    /// Runs `body` and waits until all events of the start are published, so that none follows the terminal event.
    func notifying<Value>(_ body: () async throws -> Value) async throws -> Value {
        let begun = ContinuousClock.now
        do {
            let value = try await body()
            await finish()
            return value
        } catch {
            job.trace?.add(.lease, Interval(from: begun, to: moment ?? .now))
            await finish()
            throw error
        }
    }

    private func finish() async {
        let (publishing, reporting) = state.withLock { state in
            state.isOver = true
            return (state.publishing, state.reporting)
        }
        reporting?.cancel()
        await publishing?.value
        await reporting?.value
    }
}

/// Publishes progress events of jobs whose source takes longer than ``interval`` to load.
///
/// Each job polls the progress of its source once per interval, regardless of the job that started the load. Every job
/// that waits for a load therefore gets events, and the transfer only counts bytes. A job whose source is loaded by
/// another worker gets none.
struct ProgressReports: Sendable {
    /// The time before the first event of a job and between two events. Zero disables progress events.
    let interval: Duration
    let render: RenderStage
    let publisher: PublishStage

    /// Publishes events until the task is cancelled. The task ends when the event in flight, if any, is acknowledged.
    /// - Parameter current: A function that returns the job with the source that is being loaded.
    /// - Returns: The task, or nil if the job gets no progress events.
    func begin(
        _ job: JobContext, _ attempt: Int, _ current: @escaping @Sendable () -> JobContext
    ) -> Task<Void, Never>? {
        guard interval > .zero, !job.job.cache.onlyIfCached else { return nil }
        return Task {
            var last: LoadProgress?
            while await Task.sleepUnlessCancelled(for: interval) {
                // A stalled load has nothing new to report.
                guard let progress = render.progress(of: current()), progress != last else { continue }
                last = progress
                await publisher.progress(progress, attempt, job)
            }
        }
    }
}
