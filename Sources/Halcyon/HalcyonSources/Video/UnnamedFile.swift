import Glibc
import HalcyonModel

/// A file without a name, for a program that has to move about in its input: it is gone when nobody has it open any more,
/// however they end. It blocks: not for the cooperative pool.
final class UnnamedFile: Sendable {
    /// At the file's beginning.
    let descriptor: Int32

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// - Throws: ``Failure`` `provider_error` when the disk is full, or there is no folder for temporary files.
    static func holding(_ bytes: [UInt8]) throws(Failure) -> UnnamedFile {
        let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var path = Array("\(folder)/halcyon-XXXXXX".utf8CString)
        // Children of this process have no descriptor above 2 that they were not given.
        let descriptor = mkstemp(&path)
        guard descriptor >= 0 else { throw .noTemporaryFile(errno) }
        let file = UnnamedFile(descriptor)
        unlink(path)
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw .noTemporaryFile(errno) }
            rest = rest.dropFirst(count)
        }
        lseek(descriptor, 0, SEEK_SET)
        return file
    }

    deinit { close(descriptor) }
}

extension Failure {
    fileprivate static func noTemporaryFile(_ code: Int32) -> Failure {
        Failure(.providerError, "no room for a temporary file: \(String(cString: strerror(code)))")
    }
}
