import HalcyonCluster
import HalcyonCoding
import Redis
import Telemetry

/// The presets of a gateway. They are loaded when a control message announces a change.
struct PresetUpdates: Sendable {
    let catalog: PresetCatalog
    private let store: PresetStore
    private let control: ControlReader

    /// Starts loading presets and reading control messages. The caller closes the updates.
    init(_ options: GatewayOptions, _ redis: RedisClient, log: Log, metrics: Metrics) {
        let store = PresetStore(redis, topics: options.topics)
        let catalog = PresetCatalog(options.presets, store, log: log)
        catalog.start()
        (self.store, self.catalog) = (store, catalog)
        control = ControlReader(options.control, log: log, metrics: metrics) { received in
            if case .preset = received.message { catalog.invalidate() }
        }
    }

    /// Creates the service that changes presets.
    func service(_ control: ControlPublisher) -> PresetService {
        PresetService(store, control) { [catalog] in catalog.isFixed($0) }
    }

    /// Stops reading control messages and loading presets.
    func close() async {
        await control.close()
        await catalog.close()
    }
}

extension PresetCatalog {
    /// Loads the presets for a request that names an unknown one.
    /// - Throws: ``Problem`` of the kind `unavailable` if Redis cannot be asked.
    func reloadForRequest() async throws(Problem) {
        do throws(RedisError) {
            try await reload()
        } catch {
            throw Problem(
                .unavailable, "the preset is not known here, and Redis cannot be asked for it at the moment; try again",
                retryAfter: 5)
        }
    }
}
