import Concurrency
import Foundation
import Subprocess

/// A private folder under /tmp for one test. What is left of it when this process exits is deleted.
public struct TemporaryFolder: Sendable {
    /// The absolute path, without a trailing slash.
    public let path: String

    /// Creates an empty folder whose path contains `name`.
    public init(_ name: String) {
        var template = Array("/tmp/halcyon-\(name)-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else {
            preconditionFailure("cannot create a folder in /tmp: errno \(errno)")
        }
        path = String(cString: made)
        Self.remaining.withLock { _ = $0.paths.insert(path) }
        _ = Self.removesRemainingAtExit
    }

    /// The folders that exist, and the process that created them. A copy of it that `fork` created deletes nothing.
    private static let remaining = Lock((paths: Set<String>(), process: getpid()))
    /// Registered once, on the first access.
    private static let removesRemainingAtExit =
        atexit {
            let paths = remaining.withLock { $0.process == getpid() ? $0.paths : [] }
            // Best effort: they are in /tmp.
            for path in paths { try? FileManager.default.removeItem(atPath: path) }
        } == 0

    /// Writes or replaces a file in the folder and returns its path.
    @discardableResult
    public func write(_ bytes: some Sequence<UInt8>, to name: String) -> String {
        let file = "\(path)/\(name)"
        guard let stream = fopen(file, "w") else { preconditionFailure("cannot write \(file): errno \(errno)") }
        let bytes = Array(bytes)
        let written = fwrite(bytes, 1, bytes.count, stream)
        precondition(fclose(stream) == 0 && written == bytes.count, "cannot write \(file): errno \(errno)")
        return file
    }

    /// Returns the bytes of a file in the folder; empty if there is no such file.
    public func read(_ name: String) -> [UInt8] {
        guard let stream = fopen("\(path)/\(name)", "r") else { return [] }
        defer { fclose(stream) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = fread(&part, 1, part.count, stream), count > 0 { bytes += part[..<count] }
        return bytes
    }

    /// Deletes the folder and its contents.
    public func remove() async {
        Self.remaining.withLock { _ = $0.paths.remove(path) }
        _ = try? await ChildProcess.start("rm", ["-rf", path]).exit()
    }
}
