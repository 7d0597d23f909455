import Concurrency
import Glibc

extension ChildProcess {
    /// Starts a server and waits until it reports readiness on its standard output.
    ///
    /// An open port proves nothing, because it may belong to another process. Only the child can write to this stream.
    /// - Parameters:
    ///   - words: A part of the message that reports readiness.
    ///   - options: The options; `output` is ignored.
    /// - Returns: The child; nil if it ended without the message, for example because its port was taken a moment ago.
    ///   Another port may be free.
    /// - Throws: ``ChildProcessError`` if the program does not exist or cannot be run.
    public static func start(
        _ program: String, _ arguments: [String], readyWhenItSays words: String, options: Options = Options()
    ) async throws(ChildProcessError) -> ChildProcess? {
        guard let (output, childsEnd) = socketPair() else {
            throw ChildProcessError(program: program, errno: errno)
        }
        var options = options
        options.output = .descriptor(childsEnd)
        let started: Result<ChildProcess, ChildProcessError>
        do throws(ChildProcessError) {
            started = .success(try await start(program, arguments, options: options))
        } catch {
            started = .failure(error)
        }
        close(childsEnd)
        guard case .success(let process) = started else {
            close(output)
            return try started.get()
        }
        if await says(words, output) { return process }
        await process.stop()
        return nil
    }

    /// True if `words` appear in the output before its end. A separate thread continues to read until the end: without
    /// a reader the server would be ended by SIGPIPE, or would block on a full stream.
    private static func says(_ words: String, _ socket: Int32) async -> Bool {
        await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
            _ = NamedThread(name: "child-output") {
                defer { close(socket) }
                var waiter: CheckedContinuation? = continuation
                var heard = ""
                var buffer = [UInt8](repeating: 0, count: 4096)
                while case let count = read(socket, &buffer, buffer.count), count > 0 || (count < 0 && errno == EINTR) {
                    if waiter == nil || count < 0 { continue }
                    heard += String(decoding: buffer.prefix(count), as: UTF8.self)
                    if heard.contains(words) { waiter.take()?.resume(returning: true) }
                }
                waiter?.resume(returning: false)
            }
        }
    }
}

/// A reader of a child's output stream, line by line.
struct LineReader {
    /// The descriptor for the child's stream.
    let childsEnd: Int32
    private let ownEnd: Int32
    private let tell: @Sendable (String) -> Void

    /// Creates a reader; nil if no descriptor is available.
    init?(_ tell: @escaping @Sendable (String) -> Void) {
        guard let ends = socketPair() else { return nil }
        (ownEnd, childsEnd) = ends
        self.tell = tell
    }

    /// Closes the child's end here and reads on a separate thread until no process has it open. Call it once, when the
    /// child runs or could not be started.
    func listen() {
        close(childsEnd)
        _ = NamedThread(name: "child-output") { [ownEnd, tell] in
            defer { close(ownEnd) }
            var rest: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4096)
            while case let count = read(ownEnd, &buffer, buffer.count), count > 0 || (count < 0 && errno == EINTR) {
                rest += buffer.prefix(max(0, count))
                while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    tell(String(decoding: rest[..<end], as: UTF8.self))
                    rest.removeFirst(end + 1)
                }
                if rest.count >= buffer.count {
                    tell(String(decoding: rest, as: UTF8.self))
                    rest = []
                }
            }
            if !rest.isEmpty { tell(String(decoding: rest, as: UTF8.self)) }
        }
    }
}

/// Two connected stream sockets, which are closed on exec; nil if no descriptor is available.
func socketPair() -> (Int32, Int32)? {
    var ends: [Int32] = [0, 0]
    // A socket pair instead of a pipe, because its creation sets close-on-exec atomically, so that no other child
    // inherits it.
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    return socketpair(AF_UNIX, kind, 0, &ends) == 0 ? (ends[0], ends[1]) : nil
}
