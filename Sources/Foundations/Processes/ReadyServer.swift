import Glibc
import Threads

extension ChildProcess {
    /// Starts a server and waits until it says on its standard output that it is ready.
    ///
    /// A port that answers proves nothing, for another process may be behind it; nobody but the child can write here.
    /// - Parameters:
    ///   - words: a part of what it says once it is ready.
    ///   - options: its `output` is not used.
    /// - Returns: nil when it ended without saying so; its port may have been taken a moment ago, and another be free.
    /// - Throws: ``ChildProcessError`` when there is no such program or it cannot be run.
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

    /// Whether `words` come out of the socket before its end. A thread of its own reads on until then: a server that
    /// logs to nobody would be ended by SIGPIPE, and one whose log is full would stand still.
    private static func says(_ words: String, _ socket: Int32) async -> Bool {
        await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
            _ = WorkThread(name: "child-output", stackSize: 1 << 16) {
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

/// Hears what a child writes to one of its streams, line by line.
struct LineListener {
    /// What the child is to have as the stream.
    let childsEnd: Int32
    private let ownEnd: Int32
    private let tell: @Sendable (String) -> Void

    /// nil when no descriptor is left.
    init?(_ tell: @escaping @Sendable (String) -> Void) {
        guard let ends = socketPair() else { return nil }
        (ownEnd, childsEnd) = ends
        self.tell = tell
    }

    /// Lets the child's end go and reads until nobody has it any more, on a thread of its own. To be called once, when
    /// the child runs or could not be started.
    func listen() {
        close(childsEnd)
        _ = WorkThread(name: "child-output", stackSize: 1 << 17) { [ownEnd, tell] in
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

/// Two stream sockets that are connected, closed in programs that are run; nil when no descriptor is left.
func socketPair() -> (Int32, Int32)? {
    var ends: [Int32] = [0, 0]
    // Not a pipe: only this is kept from other children in one step, so that its end is the child's end.
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    return socketpair(AF_UNIX, kind, 0, &ends) == 0 ? (ends[0], ends[1]) : nil
}
