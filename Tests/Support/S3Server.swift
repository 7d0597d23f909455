import Foundation
import Subprocess

/// A private S3-compatible store on a free port of 127.0.0.1, which checks signatures: `s3_server.py` beside this file.
public struct S3Server: Sendable {
    /// The port it listens on.
    public let port: UInt16
    private let process: ChildProcess
    private let folder: TemporaryFolder

    /// The key that belongs to ``secretKey``.
    public static let accessKey = "PLAIN"
    /// What it signs with.
    public static let secretKey = "plain-secret"
    /// The region that it takes requests for.
    public static let region = "eu-test-1"

    /// Starts the store and waits until it has these objects. Needs PyPI the first time.
    /// - Parameter objects: bytes by bucket and key (`pictures/cat.jpg`); one whose key ends in `.1`, `.2` and so on is a version.
    public static func start(_ objects: [String: [UInt8]]) async throws -> S3Server {
        let python = try await PythonTools.interpreter()
        let folder = TemporaryFolder("s3")
        for (name, bytes) in objects {
            let file = URL(filePath: "\(folder.path)/buckets/\(name)")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(bytes).write(to: file)
        }
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "s3_server.py").path
        let port = LoopbackPort.reserve()
        let process = try await ChildProcess.start(
            python, [script, "\(port)", folder.path], readyWhenItSays: "serving")
        guard let process else {
            await folder.remove()
            throw NotInTime(description: "the S3 server does not start")
        }
        return S3Server(port: port, process: process, folder: folder)
    }

    /// The requests so far: method, host, target, and If-None-Match or a dash.
    public var requests: [String] { lines("requests") }

    /// The versions of an object, the first one first.
    public func versions(_ bucket: String, _ key: String) -> [String] {
        lines("versions").compactMap { line in
            let parts = line.split(separator: " ").map(String.init)
            return parts.count == 3 && parts[0] == bucket && parts[1] == key ? parts[2] : nil
        }
    }

    private func lines(_ name: String) -> [String] {
        String(decoding: folder.read(name), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Stops it and waits for its end.
    public func stop() async {
        await process.stop()
        await folder.remove()
    }
}
