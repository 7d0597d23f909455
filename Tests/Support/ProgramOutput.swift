import Glibc
import Subprocess

/// The output of short-lived programs.
public enum ProgramOutput {
    /// Runs a program and returns its standard output.
    /// - Throws: ``ConditionTimeout`` if it fails, `ChildProcessError` if it cannot be run.
    public static func of(_ program: String, _ arguments: [String]) async throws -> String {
        // A file instead of a pipe: it contains the complete output once the program has exited.
        guard let file = tmpfile() else {
            throw ConditionTimeout(description: "cannot create a temporary file: errno \(errno)")
        }
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
        guard exit == .code(0) else { throw ConditionTimeout(description: "\(program) \(arguments): \(exit): \(text)") }
        return text
    }
}
