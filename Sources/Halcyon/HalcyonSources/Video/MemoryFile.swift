import CLinux
import Glibc
import HalcyonModel

/// A file in memory, for a program that has to move about in its input: it needs no folder that can be written to, and is gone when
/// nobody has it open any more, however they end.
final class MemoryFile: Sendable {
    /// At the file's beginning.
    let descriptor: Int32

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// It takes as long as copying does: not for the cooperative pool.
    /// - Throws: ``Failure`` `provider_error` when there is no memory or no descriptor left.
    static func holding(_ bytes: [UInt8]) throws(Failure) -> MemoryFile {
        let descriptor = clinux_memory_file("halcyon-video")
        guard descriptor >= 0 else { throw .noMemoryFile(errno) }
        let file = MemoryFile(descriptor)
        let code = writeAll(bytes, to: descriptor)
        guard code == 0 else { throw .noMemoryFile(code) }
        lseek(descriptor, 0, SEEK_SET)
        return file
    }

    deinit { close(descriptor) }
}

extension Failure {
    fileprivate static func noMemoryFile(_ code: Int32) -> Failure {
        Failure(.providerError, "no room for a video in memory: \(String(cString: strerror(code)))")
    }
}
