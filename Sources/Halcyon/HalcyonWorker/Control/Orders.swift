import HalcyonCluster
import HalcyonModel
import HalcyonSources

/// Does what all workers are told.
struct Orders: Sendable {
    let underWay: JobsUnderWay
    let sources: SourceTier
    let shared: SharedSources

    /// Results, and sources that all workers share, have gone before this was said: what is left is what this worker keeps for itself.
    func follow(_ told: ControlReader.Told) async {
        switch told.message {
        case .cancel(let id): underWay.cancel(id, at: told.moment, isOld: told.isOld)
        case .purge(let purge):
            guard case .source(let source) = purge.target else { return }
            let request = SourceRequest(source, tenant: purge.tenant)
            // What was kept since an old word is newer than the purge.
            await sources.forgetHere(request, keptBy: told.isOld ? Double(told.moment) / 1000 : .infinity)
            await shared.forget(request)
        }
    }
}
