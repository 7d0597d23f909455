import HalcyonCluster
import HalcyonModel
import HalcyonSources

/// Handles the control messages that all workers receive.
struct ControlMessageHandler: Sendable {
    let activeJobs: ActiveJobs
    let sources: SourceCache
    let assets: SharedSources

    /// Results, and sources that all workers share, have gone before this was said: what is left is what this worker keeps for itself.
    func handle(_ told: ControlReader.Told) async {
        switch told.message {
        case .cancel(let id): activeJobs.cancel(id, at: told.moment, isOld: told.isOld)
        case .purge(let purge):
            guard case .source(let source) = purge.target else { return }
            let request = SourceRequest(source, tenant: purge.tenant)
            // What was kept since an old word is newer than the purge.
            await sources.evictLocal(request, storedBefore: told.isOld ? Double(told.moment) / 1000 : .infinity)
            await assets.forget(request)
        }
    }
}
