import Foundation
import Subprocess

/// A private S3-compatible server on a free port of 127.0.0.1. It checks signatures. Implemented in `s3_server.py`.
public struct S3Server: Sendable {
    /// The port that the server listens on.
    public let port: UInt16
    private let process: ChildProcess
    private let folder: TemporaryFolder

    /// The access key that belongs to ``secretKey``.
    public static let accessKey = "PLAIN"
    /// The key that signs requests.
    public static let secretKey = "plain-secret"
    /// The region of the server.
    public static let region = "eu-test-1"

    /// Starts the server and waits until it has stored the objects. The first start needs PyPI.
    /// - Parameter objects: Bytes by bucket and key (`pictures/cat.jpg`). A suffix `.1`, `.2` and so on of a key is the
    ///   number of a version.
    public static func start(_ objects: [String: [UInt8]]) async throws -> S3Server {
        let python = try await PythonTools.interpreter()
        let folder = TemporaryFolder("s3")
        for (name, bytes) in objects {
            let file = URL(filePath: "\(folder.path)/buckets/\(name)")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(bytes).write(to: file)
        }
        let script = Repository.path("Tests/Support/s3_server.py")
        let port = LoopbackPort.reserve()
        let process = try await ChildProcess.start(
            python, [script, "\(port)", folder.path], readyWhenItSays: "serving")
        guard let process else {
            await folder.remove()
            throw ConditionTimeout(description: "the S3 server failed to start")
        }
        return S3Server(port: port, process: process, folder: folder)
    }

    /// The requests received so far: method, host, target, and If-None-Match or a dash.
    public var requests: [String] { lines("requests") }

    /// The version ids of an object, oldest first.
    public func versions(_ bucket: String, _ key: String) -> [String] {
        lines("versions").compactMap { line in
            let parts = line.split(separator: " ").map(String.init)
            return parts.count == 3 && parts[0] == bucket && parts[1] == key ? parts[2] : nil
        }
    }

    /// An error that the server responds with, by its name in `s3_server.py`.
    public enum Failure: String, Sendable {
        /// 503 SlowDown for all requests.
        case slowDown = "slow-down"
        /// 507 for requests that write an object.
        case storageFull = "storage-full PUT"
    }

    /// Makes all requests fail from now on.
    /// - Parameter failure: The error; nil to serve requests again.
    public func fail(with failure: Failure?) {
        // Renamed, so that the server never reads a part of it.
        let (draft, file) = ("\(folder.path)/failure.draft", "\(folder.path)/failure")
        guard let failure else { return _ = unlink(file) }
        folder.write(failure.rawValue.utf8, to: "failure.draft")
        rename(draft, file)
    }

    private func lines(_ name: String) -> [String] {
        String(decoding: folder.read(name), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Stops the server and waits for it to exit.
    public func stop() async {
        await process.stop()
        await folder.remove()
    }
}
