import Concurrency
import Glibc
import Subprocess

/// Returns `count` zeros, compressed by gzip(1).
func gzip(zeros count: Int) async throws -> [UInt8] {
    var ends: [Int32] = [0, 0]
    precondition(pipe(&ends) == 0, "cannot create a pipe: errno \(errno)")
    let (reader, writer) = (ends[0], ends[1])
    var options = ChildProcess.Options()
    options.output = .descriptor(writer)
    let child = try await ChildProcess.start("sh", ["-c", "head -c \(count) /dev/zero | gzip -9"], options: options)
    close(writer)
    defer { close(reader) }
    let bytes: [UInt8] = await withCheckedContinuation { continuation in
        _ = NamedThread(name: "gzip") {
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = read(reader, &buffer, buffer.count)
                if count <= 0 { break }
                bytes += buffer.prefix(count)
            }
            continuation.resume(returning: bytes)
        }
    }
    await child.exit()
    return bytes
}
