import Concurrency
import Glibc

/// Reads and writes whole files outside the cooperative thread pool.
enum Files {
    /// Reads a file. `-` means standard input.
    /// - Parameter limit: the maximum size in bytes. A larger file is an error.
    /// - Throws: ``FileError``.
    static func read(_ path: String, limit: Int = .max) async throws(FileError) -> [UInt8] {
        try await blocking { () throws(FileError) in
            let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw FileError("cannot read \(path)", errno) }
            defer { if path != "-" { close(descriptor) } }
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while case let count = Glibc.read(descriptor, &buffer, buffer.count), count != 0 {
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { throw FileError("cannot read \(path)", errno) }
                bytes += buffer[..<count]
                guard bytes.count <= limit else { throw FileError("\(path): larger than \(limit) bytes", nil) }
            }
            return bytes
        }
    }

    /// Writes or replaces a file atomically, so that readers never see a partial file.
    /// - Throws: ``FileError``.
    static func write(_ bytes: [UInt8], to path: String) async throws(FileError) {
        try await blocking { () throws(FileError) in
            // Devices and pipes are written to directly.
            var status = stat()
            let isSpecial = stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
            let target = isSpecial ? path : "\(path).\(getpid()).part"
            let descriptor = open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
            guard descriptor >= 0 else { throw FileError("cannot write \(path)", errno) }
            let isWritten = Console.write(bytes, to: descriptor)
            let code = errno
            guard close(descriptor) == 0, isWritten else {
                if !isSpecial { unlink(target) }
                throw FileError("cannot write \(path)", isWritten ? errno : code)
            }
            if !isSpecial, rename(target, path) != 0 {
                let code = errno
                unlink(target)
                throw FileError("cannot write \(path)", code)
            }
        }
    }

    /// Creates a folder and its missing parents.
    /// - Throws: ``FileError``.
    static func makeFolder(_ path: String) async throws(FileError) {
        try await blocking { () throws(FileError) in
            var made = path.hasPrefix("/") ? "" : "."
            for name in path.split(separator: "/") {
                made += "/\(name)"
                if mkdir(made, 0o777) != 0 && errno != EEXIST {
                    throw FileError("cannot create the folder \(path)", errno)
                }
            }
        }
    }
}

/// An error from reading or writing a file.
struct FileError: Error, CustomStringConvertible {
    let description: String

    init(_ what: String, _ code: Int32?) {
        description = code.map { "\(what): \(String(cString: strerror($0)))" } ?? what
    }
}
