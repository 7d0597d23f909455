import HalcyonCluster
import HalcyonModel
import Threads

/// Handles the point of no return of a job: from then on this worker does it. Publishes `started` and progress events.
final class StartNotifier: Sendable {
    private struct State {
        var moment: ContinuousClock.Instant?
        var publishing: Task<Void, Never>?
        var reporting: Task<Void, Never>?
        var isOver = false
    }

    private let delivery: TakenRecord
    private let job: JobContext
    /// The number of the attempt, from 1.
    private let attempt: Int
    private let publisher: PublishStage
    private let progress: ProgressReports
    private let state = Lock(State())

    init(
        _ delivery: TakenRecord, _ job: JobContext, _ attempt: Int, _ publisher: PublishStage,
        _ progress: ProgressReports
    ) {
        self.delivery = delivery
        self.job = job
        self.attempt = attempt
        self.publisher = publisher
        self.progress = progress
    }

    /// Claims the job. A recalled job leaves its work in any case. One that joined work under way gets progress events
    /// alone, and one that takes only cached results may end at once.
    /// - Parameter isOwn: whether the job's own operation has started.
    /// - Returns: whether the job stays.
    func start(isOwn: Bool) -> Bool {
        guard delivery.begin() else { return false }
        state.withLock { state in
            // An operation may call this just after the job has left it.
            if state.isOver { return }
            if isOwn, state.moment == nil {
                state.moment = .now
                if !job.job.cache.onlyIfCached, job.start() {
                    state.publishing = Task { [job, publisher] in await publisher.started(job) }
                }
            }
            if state.reporting == nil { state.reporting = progress.begin(job, attempt) }
        }
        return true
    }

    /// The start of the job's own work.
    var moment: ContinuousClock.Instant? { state.withLock { $0.moment } }

    /// Performs `body`, and waits until all events of the start are published: none follows the terminal event.
    func notifying<Value>(_ body: () async throws -> Value) async throws -> Value {
        let begun = ContinuousClock.now
        do {
            let value = try await body()
            await finish()
            return value
        } catch {
            job.trace?.add(.lease, Lap(from: begun, to: moment ?? .now))
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

/// Sends progress events of jobs whose source takes longer than ``interval`` to load.
///
/// Each job polls the progress of its source once per interval, whichever job started the load. So every job that waits for a load gets events, and
/// the transfer only counts bytes. A job whose source is loaded by another worker gets none.
struct ProgressReports: Sendable {
    /// Time before the first event of a job and between two of them; zero disables progress events.
    let interval: Duration
    let render: RenderStage
    let publisher: PublishStage

    /// Sends events until the task is cancelled. The task ends when the event in flight, if any, is acknowledged.
    /// - Returns: nil if the job gets no progress events.
    func begin(_ job: JobContext, _ attempt: Int) -> Task<Void, Never>? {
        guard interval > .zero, !job.job.cache.onlyIfCached else { return nil }
        return Task {
            var (last, count) = (LoadProgress?.none, 0)
            while await Task.sleepUnlessCancelled(for: interval) {
                // A stalled load has nothing new to report.
                guard let progress = render.progress(of: job), progress != last else { continue }
                (last, count) = (progress, count + 1)
                await publisher.progress(progress, attempt, count, job)
            }
        }
    }
}
