import Concurrency
import HalcyonResults
import Telemetry

/// Checks the result store: access, and free space.
struct ResultStoreCheck {
    let configuration: Configuration

    /// The findings; empty if no result store is configured.
    func findings() async -> [DoctorReport] {
        guard let options = configuration.resultStore else { return [] }
        do {
            let store = try await blocking {
                try ResultStore.open(options, log: Log(level: .critical, sink: NoLog()), metrics: Metrics())
            }
            let findings = await findings(of: store, at: "\(options.location)")
            await store.close(within: .zero)
            return findings
        } catch {
            return [.broken("store", "\(error)", mend: "create the folder, or correct results.store")]
        }
    }

    private func findings(of store: ResultStore, at place: String) async -> [DoctorReport] {
        do throws(StorageError) {
            try await store.probe()
            guard let free = try await store.freeBytes() else {
                return [.ok("store", "readable and writable: \(place)")]
            }
            let text = "readable and writable: \(place), \(byteText(free)) free"
            return free < 1 << 30
                ? [
                    .warning(
                        "store", text,
                        mend: "enlarge the file system; the least recently used results are deleted in the last tenth")
                ]
                : [.ok("store", text)]
        } catch {
            let remedy =
                switch error.kind {
                case .forbidden: "allow reading, writing, listing and deleting there; see results.s3.accessKey"
                case .full: "free space, or set results.store.maximumBytes"
                case .misconfigured: "correct results.store and results.s3.region, or create the bucket"
                case .unavailable, .tooLarge, .cancelled: "start it, or correct results.s3.endpoint"
                }
            return [
                .broken("store", "\(place): \(error); until then results are rendered again", mend: remedy)
            ]
        }
    }
}

/// A log sink that discards everything.
private struct NoLog: LogSink {
    func log(_ record: LogRecord) {}
}
