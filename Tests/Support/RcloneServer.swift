import Foundation
import Subprocess

/// A private S3-compatible server on a free port of 127.0.0.1: `rclone serve s3`, a second implementation beside
/// ``S3Server``. Its keys are those of ``S3Server``.
public struct RcloneServer: Sendable {
    /// The port that the server listens on.
    public let port: UInt16
    private let process: ChildProcess
    private let folder: TemporaryFolder

    /// Starts the server with an empty bucket. The first start needs PyPI.
    public static func start(bucket: String) async throws -> RcloneServer {
        let python = URL(filePath: try await PythonTools.interpreter())
        let rclone = python.deletingLastPathComponent().appending(path: "rclone").path
        let folder = TemporaryFolder("rclone")
        try FileManager.default.createDirectory(atPath: "\(folder.path)/\(bucket)", withIntermediateDirectories: true)
        let port = LoopbackPort.reserve()
        let process = try await ChildProcess.start(
            // The server reports readiness on its standard error.
            "/bin/sh",
            [
                "-c", #"exec "$0" "$@" 2>&1"#, rclone, "serve", "s3", "--config", "", "--addr", "127.0.0.1:\(port)",
                "--auth-key", "\(S3Server.accessKey),\(S3Server.secretKey)", folder.path,
            ], readyWhenItSays: "Starting s3 server")
        guard let process else {
            await folder.remove()
            throw ConditionTimeout(description: "rclone failed to start")
        }
        return RcloneServer(port: port, process: process, folder: folder)
    }

    /// Stops the server and waits for it to exit.
    public func stop() async {
        await process.stop()
        await folder.remove()
    }
}
