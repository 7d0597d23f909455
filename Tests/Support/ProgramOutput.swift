import Glibc
import Subprocess

/// Programs that print something and end.
public enum ProgramOutput {
    /// - Returns: what the program printed.
    /// - Throws: ``NotInTime`` when it fails, `ChildProcessError` when it cannot be run.
    public static func of(_ program: String, _ arguments: [String]) async throws -> String {
        // A file and no pipe: when the program has ended, all that it wrote is there.
        guard let file = tmpfile() else { throw NotInTime(description: "no temporary file: errno \(errno)") }
        defer { fclose(file) }
        var options = ChildProcess.Options()
        options.output = .descriptor(fileno(file))
        let exit = try await ChildProcess.start(program, arguments, options: options).exit()
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 14)
        while case let count = pread(fileno(file), &part, part.count, bytes.count), count > 0 {
            bytes += part[..<count]
        }
        let text = String(decoding: bytes, as: UTF8.self)
        guard exit == .code(0) else { throw NotInTime(description: "\(program) \(arguments): \(exit): \(text)") }
        return text
    }
}
