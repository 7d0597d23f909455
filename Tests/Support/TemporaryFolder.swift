import Glibc
import Subprocess

/// A folder under /tmp of this test's own.
public struct TemporaryFolder: Sendable {
    /// Its absolute path, without a slash at the end.
    public let path: String

    /// Makes an empty folder; `name` shows in its path.
    public init(_ name: String) {
        var template = Array("/tmp/halcyon-\(name)-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { preconditionFailure("cannot make a folder in /tmp: errno \(errno)") }
        path = String(cString: made)
    }

    /// Writes (or replaces) a file of the folder and gives back its path.
    @discardableResult
    public func write(_ bytes: some Sequence<UInt8>, to name: String) -> String {
        let file = "\(path)/\(name)"
        guard let stream = fopen(file, "w") else { preconditionFailure("cannot write \(file): errno \(errno)") }
        let bytes = Array(bytes)
        let written = fwrite(bytes, 1, bytes.count, stream)
        precondition(fclose(stream) == 0 && written == bytes.count, "cannot write \(file): errno \(errno)")
        return file
    }

    /// The bytes of a file of the folder; none when there is no such file.
    public func read(_ name: String) -> [UInt8] {
        guard let stream = fopen("\(path)/\(name)", "r") else { return [] }
        defer { fclose(stream) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = fread(&part, 1, part.count, stream), count > 0 { bytes += part[..<count] }
        return bytes
    }

    /// Deletes the folder with all that is in it.
    public func remove() async {
        _ = try? await ChildProcess.start("rm", ["-rf", path]).exit()
    }
}
