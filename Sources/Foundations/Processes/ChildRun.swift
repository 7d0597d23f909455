import Glibc
import Threads

/// How a program ended that was run to its end, and what it wrote.
public struct ChildRun: Sendable {
    /// Why it ended.
    public enum End: Equatable, Sendable {
        /// By itself.
        case exit(ChildProcess.Exit)
        /// It took longer than allowed, and was killed.
        case tooLong
        /// It wrote more than allowed, and was killed.
        case tooMuch
    }

    /// Why it ended.
    public let end: End
    /// What it wrote to standard output.
    public let output: [UInt8]
    /// The first 4 KiB of what it wrote to standard error.
    public let errors: String
}

extension ChildProcess {
    /// Runs a program to its end.
    ///
    /// - Parameters:
    ///   - options: its `output` and `errors` are not used.
    ///   - timeLimit: it is killed when so much time has passed.
    ///   - outputLimit: it is killed when it writes more bytes than these to standard output.
    /// - Throws: ``ChildProcessError`` when it cannot be run; `CancellationError` when the task is cancelled, which kills it.
    public static func run(
        _ program: String, _ arguments: [String], options: Options = Options(), timeLimit: Duration, outputLimit: Int
    ) async throws -> ChildRun {
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
    ) async throws -> ChildRun {
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
            // What was written is read to its end; a child of the child, which may live on, is not waited for.
            for descriptor in [output, errors] { shutdown(descriptor, Int32(SHUT_RDWR)) }
            let (written, said) = await (bytes, words)
            for descriptor in [output, errors] { close(descriptor) }
            try Task.checkCancellation()
            let end: ChildRun.End = written.isAll ? isTooLong.withLock { $0 } ? .tooLong : .exit(exit) : .tooMuch
            return ChildRun(end: end, output: written.bytes, errors: String(decoding: said.bytes, as: UTF8.self))
        } onCancel: {
            send(SIGKILL)
        }
    }

    /// Reads to the end and keeps so much.
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
