import Concurrency
import Glibc

/// The exit status and the output of a program that has ended.
public struct ProcessResult: Sendable {
    /// The reason for the end.
    public enum End: Equatable, Sendable {
        /// The program exited.
        case exit(ChildProcess.Exit)
        /// The program exceeded its time limit and was killed.
        case tooLong
        /// The program exceeded its output limit and was killed.
        case tooMuch
    }

    /// The reason for the end.
    public let end: End
    /// The standard output.
    public let output: [UInt8]
    /// The first 4 KiB of the standard error.
    public let errors: String
}

extension ChildProcess {
    /// Runs a program and waits for its end.
    ///
    /// - Parameters:
    ///   - options: The options; `output` and `errors` are ignored.
    ///   - timeLimit: The time after which the program is killed.
    ///   - outputLimit: The number of bytes of standard output beyond which the program is killed.
    /// - Throws: ``ChildProcessError`` if the program cannot be run; `CancellationError` if the task is cancelled,
    ///   which kills the program.
    public static func run(
        _ program: String, _ arguments: [String], options: Options = Options(), timeLimit: Duration, outputLimit: Int
    ) async throws -> ProcessResult {
        guard let (output, childsOutput) = socketPair() else { throw ChildProcessError(program: program, errno: errno) }
        guard let (errors, childsErrors) = socketPair() else {
            for descriptor in [output, childsOutput] { close(descriptor) }
            throw ChildProcessError(program: program, errno: EMFILE)
        }
        var options = options
        options.output = .descriptor(childsOutput)
        options.errors = .descriptor(childsErrors)
        let child: ChildProcess
        do throws(ChildProcessError) {
            defer {
                close(childsOutput)
                close(childsErrors)
            }
            child = try await start(program, arguments, options: options)
        } catch {
            close(output)
            close(errors)
            throw error
        }
        return try await child.collect(output, errors, timeLimit, outputLimit)
    }

    private func collect(
        _ output: Int32, _ errors: Int32, _ timeLimit: Duration, _ outputLimit: Int
    ) async throws -> ProcessResult {
        let isTooLong = Lock(false)
        let impatience = Task {
            try await Task.sleep(for: timeLimit)
            isTooLong.withLock { $0 = true }
            send(SIGKILL)
        }
        defer { impatience.cancel() }
        return try await withTaskCancellationHandler {
            async let words = blocking { Self.read(errors, upTo: 4096, whenFull: {}) }
            async let bytes = blocking { Self.read(output, upTo: outputLimit) { self.send(SIGKILL) } }
            let exit = await exit()
            // Read the remaining output, but do not wait for a grandchild that may still have the streams open.
            for descriptor in [output, errors] { shutdown(descriptor, Int32(SHUT_RDWR)) }
            let (written, said) = await (bytes, words)
            for descriptor in [output, errors] { close(descriptor) }
            try Task.checkCancellation()
            let end: ProcessResult.End = written.isAll ? isTooLong.withLock { $0 } ? .tooLong : .exit(exit) : .tooMuch
            return ProcessResult(end: end, output: written.bytes, errors: String(decoding: said.bytes, as: UTF8.self))
        } onCancel: {
            send(SIGKILL)
        }
    }

    /// Reads to the end and stores up to `limit` bytes.
    private static func read(
        _ descriptor: Int32, upTo limit: Int, whenFull stop: () -> Void
    ) -> (bytes: [UInt8], isAll: Bool) {
        var bytes: [UInt8] = []
        var isAll = true
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = Glibc.read(descriptor, &buffer, buffer.count), count > 0 || (count < 0 && errno == EINTR)
        {
            let part = buffer.prefix(max(0, count))
            if isAll, bytes.count + part.count > limit {
                isAll = false
                stop()
            }
            bytes += part.prefix(limit - bytes.count)
        }
        return (bytes, isAll)
    }
}
