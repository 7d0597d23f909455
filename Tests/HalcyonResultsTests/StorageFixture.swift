import Concurrency
import Formats
import Foundation
import HalcyonModel
import HalcyonSources
import Hashing
import Telemetry
import TestSupport
import Testing

@testable import HalcyonResults

/// A storage of each kind: a folder, and a bucket of two S3-compatible servers. `HALCYON_TEST_S3` names another server in
/// place of the second one.
enum StorageKind: String, CaseIterable, Sendable {
    case folder, s3, other

    /// True for both servers.
    var isBucket: Bool { self != .folder }

    /// Runs `body` with an empty storage.
    func with(_ body: (ResultStoreOptions) async throws -> Void) async throws {
        switch self {
        case .folder:
            let folder = TemporaryFolder("results")
            let result = await outcome { try await body(.patient(.folder("\(folder.path)/store"))) }
            await folder.remove()
            try result.get()
        case .s3:
            let port = try await Self.s3Server.value.port
            let url = "http://\(S3Server.accessKey):\(S3Server.secretKey)@127.0.0.1:\(port)/results"
            try await body(Self.bucket("\(url)?\(S3Server.region)"))
        case .other:
            if let url = ProcessInfo.processInfo.environment["HALCYON_TEST_S3"] {
                return try await body(Self.bucket(url))
            }
            let port = try await Self.rcloneServer.value.port
            let url = "http://\(S3Server.accessKey):\(S3Server.secretKey)@127.0.0.1:\(port)/results?here"
            try await body(Self.bucket(url))
        }
    }

    /// Servers that the first test which needs them starts, and that run until this process exits.
    private static let s3Server = Task { try await S3Server.start(["results/other/file": Array("foreign".utf8)]) }
    private static let rcloneServer = Task { try await RcloneServer.start(bucket: "results") }

    /// The part of a bucket that belongs to one test.
    /// - Parameter url: `http://ACCESS_KEY:SECRET_KEY@HOST:PORT/BUCKET?REGION`.
    private static func bucket(_ url: String) throws -> ResultStoreOptions {
        let parts = try #require(URLComponents(string: url))
        let (host, port) = (try #require(parts.host), try #require(parts.port))
        let prefix = "\(UInt64.random(in: .min ... .max))/"
        var options = ResultStoreOptions.patient(.s3(bucket: String(parts.path.dropFirst()), prefix: prefix))
        options.s3.endpoint = try WebURL("\(parts.scheme ?? "http")://\(host):\(port)")
        options.s3.region = parts.query ?? ""
        options.s3.credentials = .init(accessKey: parts.user ?? "", secretKey: parts.password ?? "")
        return options
    }

    private func outcome(_ body: () async throws -> Void) async -> Result<Void, any Error> {
        do { return .success(try await body()) } catch { return .failure(error) }
    }
}

extension ResultStoreOptions {
    /// Creates default options with a timeout of reads that a busy machine does not reach.
    static func patient(_ location: ResultStoreLocation) -> ResultStoreOptions {
        var options = ResultStoreOptions(location)
        options.readTimeout = .seconds(600)
        return options
    }
}

/// The parts of results for tests.
enum Samples {
    /// The key of a result of the web source with this name.
    static func key(_ name: String, width: Int = 10, tenant: String? = nil) -> ResultKey {
        ResultKey("halcyon:{\(hash(source(name), tenant))}:\(digest("\(width)"))")!
    }

    static func source(_ name: String) -> Source { try! Source("http://example.org/\(name)") }

    private static func hash(_ source: Source, _ tenant: String?) -> String {
        SourceRequest(source, tenant: tenant).sourceHash
    }

    static func digest(_ text: String) -> String { String(SHA256.hash(text).description.prefix(32)) }

    /// The time now in microseconds since 1970, as fencing tokens.
    static var now: Int64 { Timestamp.now.milliseconds * 1000 }

    static func result(
        _ key: ResultKey = key("a"), body: String = "picture", tenant: String? = nil, for seconds: Double = 1000,
        fence: Int64 = now, since: Int64? = nil, etag: String? = nil
    ) -> StoredResult {
        let bytes = Array(body.utf8)
        let metadata = ResultMetadata(
            width: 10, height: 8, format: .jpeg, bytes: bytes.count, sha256: SHA256.hash(bytes).description,
            source: SourceMetadata(status: 200, etag: etag, bytes: 900, format: .png, width: 100, height: 80))
        let now = Timestamp.now.milliseconds
        return StoredResult(
            key: key, tenant: tenant, body: bytes, metadata: metadata, expiresAt: now + Int64(seconds * 1000),
            storedAt: now, rule: "0", fence: fence, since: since ?? fence)
    }
}

extension StoredResult {
    /// Returns the result as it is found in a store that it was written to with these tags.
    func found(with tags: [String]) -> StoredResult {
        var found = self
        found.tagDigests = tags.map { TagDigest.of($0, tenant: tenant) }
        return found
    }
}

extension ResultStore {
    /// Opens a store, runs `body` and closes the store.
    /// - Parameter isStarted: false for a store that reads no tombstones by itself.
    static func with(
        _ options: ResultStoreOptions, isStarted: Bool = true, metrics: Metrics = Metrics(), log: Log = .silent,
        standing: @escaping @Sendable (StoredResult) async -> ResultStanding = { _ in .current },
        _ body: (ResultStore) async throws -> Void
    ) async throws {
        let store = try ResultStore.open(options, log: log, metrics: metrics, standing: standing)
        if isStarted { store.start() }
        do {
            try await body(store)
        } catch {
            await store.close(within: .seconds(60))
            throw error
        }
        await store.close(within: .seconds(60))
    }

    /// Writes a result and waits until it is stored.
    func put(_ result: StoredResult, tags: [String] = []) async throws { try await ensure(result, tags: tags) }

    /// The names of all objects.
    func allNames() async -> [String] {
        var names: [String] = []
        try? await forEachPage("") { names += $0.map(\.name) }
        return names
    }
}

/// A storage that records what it is told to write.
final class RecordingStorage: ObjectStorage {
    private let storage: FolderStorage
    private let log = Lock<[String]>([])

    init(_ storage: FolderStorage) { self.storage = storage }

    var calls: [String] { log.withLock { $0 } }
    var isSwept: Bool { storage.isSwept }

    func write(_ object: StorageObject, as name: String, isDurable: Bool) async throws(StorageError) {
        log.withLock { $0.append("write \(isDurable ? "durably " : "")\(name)") }
        try await storage.write(object, as: name, isDurable: isDurable)
    }

    func synchronize(_ name: String) async throws(StorageError) {
        log.withLock { $0.append("synchronize \(name)") }
        try await storage.synchronize(name)
    }

    func read(_ name: String, upTo limit: Int) async throws(StorageError) -> StorageObject? {
        try await storage.read(name, upTo: limit)
    }

    func head(_ name: String) async throws(StorageError) -> StorageHead? { try await storage.head(name) }
    func remove(_ names: [String]) async throws(StorageError) { try await storage.remove(names) }

    func list(_ prefix: String, after last: String?) async throws(StorageError) -> [StorageEntry] {
        try await storage.list(prefix, after: last)
    }

    func space() async throws(StorageError) -> StorageSpace? { try await storage.space() }
    func close() async { await storage.close() }
}
