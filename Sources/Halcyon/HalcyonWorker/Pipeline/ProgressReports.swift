import HalcyonModel
import Threads

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
