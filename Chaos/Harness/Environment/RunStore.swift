import Formats
import HalcyonModel
import HalcyonResults
import HalcyonSources
import Telemetry
import TestSupport

/// The kinds of result stores of a run.
public enum StoreKind: String, CaseIterable, Sendable {
    /// A bucket of a local S3-compatible server.
    case s3
    /// A folder on a file system in memory, which requires root.
    case folder
    /// No result store.
    case none
}

/// The result store of a run.
enum RunStore: Sendable {
    case none
    /// A bucket of a local server, which each worker reaches through its own relay.
    case bucket(S3Server)
    /// A folder on a file system in memory.
    case folder(ScratchDisk)

    /// The size of the file system: more than any run fills.
    private static let mebibytes = 2048
    private static let bucket = "results"

    /// Starts a store.
    /// - Throws: ``RunStoreError`` if there is no permission to mount a file system.
    static func start(_ kind: StoreKind) async throws -> RunStore {
        switch kind {
        case .none: return .none
        // A bucket is created by an object in it.
        case .s3: return .bucket(try await S3Server.start(["\(bucket)/other": [0]]))
        case .folder:
            guard let disk = await ScratchDisk.mount(mebibytes: mebibytes) else { throw RunStoreError() }
            return .folder(disk)
        }
    }

    /// The server of a bucket.
    var server: S3Server? { if case .bucket(let server) = self { server } else { nil } }

    /// True if faults of this kind can be injected.
    func canInject(_ kind: FaultKind) -> Bool {
        switch self {
        case .none: !kind.hitsStore
        case .bucket: true
        case .folder: !kind.hitsStore || kind == .storeFull
        }
    }

    /// Leaves no space.
    func fill() async throws {
        switch self {
        case .none: break
        case .bucket(let server): server.fail(with: .storageFull)
        case .folder(let disk): try await disk.fill()
        }
    }

    /// Provides space again.
    func clear() async throws {
        switch self {
        case .none: break
        case .bucket(let server): server.fail(with: nil)
        case .folder(let disk): try await disk.clear()
        }
    }

    /// The environment variables of a worker.
    /// - Parameter port: The port at which it reaches the server of a bucket.
    func settings(port: UInt16?) -> [String: String] {
        var settings = [
            // Some results wait for space in the queue while the store does not respond.
            "HALCYON_RESULTS_STORE_QUEUE_BYTES": "32KiB",
            "HALCYON_RESULTS_STORE_READ_TIMEOUT": "10s", "HALCYON_RESULTS_STORE_WRITE_TIMEOUT": "20s",
            "HALCYON_RESULTS_STORE_SWEEP_INTERVAL": "20s", "HALCYON_RESULTS_STORE_REFRESH_INTERVAL": "5s",
        ]
        switch self {
        case .none: return [:]
        case .bucket(let server):
            settings["HALCYON_RESULTS_STORE"] = "s3://\(Self.bucket)/made"
            settings["HALCYON_RESULTS_S3_ENDPOINT"] = "http://127.0.0.1:\(port ?? server.port)"
            settings["HALCYON_RESULTS_S3_REGION"] = S3Server.region
            settings["HALCYON_RESULTS_S3_ACCESS_KEY"] = S3Server.accessKey
            settings["HALCYON_RESULTS_S3_SECRET_KEY"] = S3Server.secretKey
        case .folder(let disk):
            settings["HALCYON_RESULTS_STORE"] = "file://\(disk.path)/made"
            // A full disk must not make the sweeper delete results that the audit expects.
            settings["HALCYON_RESULTS_STORE_MAXIMUM_BYTES"] = "1TiB"
        }
        return settings
    }

    /// Opens the store directly, to verify its content; nil if there is none.
    func open() throws -> ResultStore? {
        var options: ResultStoreOptions
        switch self {
        case .none: return nil
        case .bucket(let server):
            options = ResultStoreOptions(.s3(bucket: Self.bucket, prefix: "made/"))
            options.s3.endpoint = try WebURL("http://127.0.0.1:\(server.port)")
            options.s3.region = S3Server.region
            options.s3.credentials = .init(accessKey: S3Server.accessKey, secretKey: S3Server.secretKey)
        case .folder(let disk): options = ResultStoreOptions(.folder("\(disk.path)/made"))
        }
        return try ResultStore.open(options, log: .silent, metrics: Metrics())
    }

    /// Stops the server or unmounts the file system.
    func stop() async {
        switch self {
        case .none: break
        case .bucket(let server): await server.stop()
        case .folder(let disk): await disk.remove()
        }
    }
}

/// A folder store needs a file system of its own.
struct RunStoreError: Error, CustomStringConvertible {
    let description = "cannot mount a file system for the result store without root privileges; use --store s3"
}
