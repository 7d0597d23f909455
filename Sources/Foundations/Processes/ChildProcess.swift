import CLinux
import Glibc
import Threads

/// A program run as a child of this one.
///
/// One thread spawns the child and waits for it. So the death signal, which Linux ties to the spawning *thread*
/// (prctl(2), PR_SET_PDEATHSIG), fires when this process ends, however it ends, and at no other time.
public final class ChildProcess: Sendable {
    /// Where a stream of the child goes.
    public enum Output: Sendable {
        /// To /dev/null.
        case discarded
        /// To the same place as this process's own.
        case inherited
        /// To a descriptor that stays open until ``ChildProcess/start(_:_:options:)`` has returned.
        case descriptor(Int32)
        /// Line by line to a function, which a thread made for it calls until the child has closed the stream. What is
        /// longer than 4 KiB is cut into several lines.
        indirect case lines(@Sendable (String) -> Void)
    }

    /// Where the standard input of the child comes from.
    public enum Input: Sendable {
        /// From /dev/null.
        case nothing
        /// From a descriptor that stays open until ``ChildProcess/start(_:_:options:)`` has returned. A socket serves
        /// for both directions.
        case descriptor(Int32)
    }

    /// How a child starts; the defaults suit a private server.
    public struct Options: Sendable {
        /// The whole environment; nil for this process's own.
        public var environment: [String: String]?
        /// Standard input.
        public var input = Input.nothing
        /// Standard output.
        public var output = Output.discarded
        /// Standard error.
        public var errors = Output.discarded
        /// Sent to the child when this process is gone; nil lets it live on.
        public var deathSignal: Int32? = SIGKILL
        /// Keeps a terminal's Ctrl-C from the child, which its parent then stops in its own time.
        public var ignoresInterrupt = true
        /// Limits of setrlimit(2), by resource (`RLIMIT_AS`, …). Under a sanitizer those of memory are not
        /// set: its shadow alone is larger than any.
        public var limits: [Int32: UInt64] = [:]
        /// The defaults.
        public init() {}
    }

    /// How a child ended.
    public enum Exit: Equatable, Sendable, CustomStringConvertible {
        /// It called exit with this code.
        case code(Int32)
        /// A signal ended it.
        case signal(Int32)

        /// For messages.
        public var description: String {
            switch self {
            case .code(let code): "exit code \(code)"
            case .signal(let number): "signal \(number)"
            }
        }
    }

    private enum State {
        case running(waiters: [@Sendable (Exit) -> Void])
        case ended(Exit)
    }

    /// The child's process id. After its end it may name another process: use ``send(_:)``, which knows.
    public let pid: pid_t
    private let state: Lock<State>

    private init(pid: pid_t, state: Lock<State>) {
        self.pid = pid
        self.state = state
    }

    /// Starts `program` (a path, or a name looked up in PATH).
    /// - Throws: ``ChildProcessError`` when there is no such program or it cannot be run.
    public static func start(
        _ program: String, _ arguments: [String] = [], options: Options = Options()
    ) async throws(ChildProcessError) -> ChildProcess {
        // Handed over under a lock: of a continuation that is resumed before its task waits the thread sanitizer sees no order.
        let result = Lock<Result<ChildProcess, ChildProcessError>?>(nil)
        await withCheckedContinuation { continuation in
            launch(program, arguments, options) { launched in
                result.withLock { $0 = launched }
                continuation.resume()
            }
        }
        return try result.withLock { $0 }!.get()
    }

    /// ``start(_:_:options:)`` for threads that may block: never call it on a task's thread.
    /// - Throws: ``ChildProcessError`` when there is no such program or it cannot be run.
    public static func startBlocking(
        _ program: String, _ arguments: [String] = [], options: Options = Options()
    ) throws(ChildProcessError) -> ChildProcess {
        let answer = Answer<Result<ChildProcess, ChildProcessError>>()
        launch(program, arguments, options) { answer.give($0) }
        return try answer.wait().get()
    }

    private static func launch(
        _ program: String, _ arguments: [String], _ options: Options,
        _ tell: @escaping @Sendable (Result<ChildProcess, ChildProcessError>) -> Void
    ) {
        _ = WorkThread(name: "child") {
            guard let path = findExecutable(program) else {
                return tell(.failure(ChildProcessError(program: program, errno: ENOENT)))
            }
            var listeners: [LineListener] = []
            var options = options
            for stream in [\Options.output, \Options.errors] {
                guard case .lines(let tell) = options[keyPath: stream], let listener = LineListener(tell) else {
                    continue
                }
                listeners.append(listener)
                options[keyPath: stream] = .descriptor(listener.childsEnd)
            }
            var pid: pid_t = 0
            let error = spawn(path, [program] + arguments, options, &pid)
            for listener in listeners { listener.listen() }
            guard error == 0 else { return tell(.failure(ChildProcessError(program: program, errno: error))) }
            let state = Lock(State.running(waiters: []))
            tell(.success(ChildProcess(pid: pid, state: state)))
            wait(for: pid, state)
        }
    }

    /// Whether it has not ended yet.
    public var isRunning: Bool {
        state.withLock { if case .running = $0 { true } else { false } }
    }

    /// Sends a signal; nothing happens when the child has ended.
    public func send(_ signal: Int32) {
        state.withLock { state in
            if case .running = state { kill(pid, signal) }
        }
    }

    /// Waits for the end of the child.
    @discardableResult
    public func exit() async -> Exit {
        await withCheckedContinuation { continuation in whenEnded { continuation.resume(returning: $0) } }
    }

    /// ``exit()`` for threads that may block: never call it on a task's thread.
    @discardableResult
    public func exitBlocking() -> Exit {
        let answer = Answer<Exit>()
        whenEnded { answer.give($0) }
        return answer.wait()
    }

    private func whenEnded(_ tell: @escaping @Sendable (Exit) -> Void) {
        let ended: Exit? = state.withLock { state in
            switch state {
            case .running(let waiters):
                state = .running(waiters: waiters + [tell])
                return nil
            case .ended(let exit): return exit
            }
        }
        if let ended { tell(ended) }
    }

    /// Asks the child to end with SIGTERM, and makes it with SIGKILL after `grace`.
    @discardableResult
    public func stop(grace: Duration = .seconds(5)) async -> Exit {
        send(SIGTERM)
        let impatience = Task {
            try await Task.sleep(for: grace)
            send(SIGKILL)
        }
        defer { impatience.cancel() }
        return await exit()
    }

    private static func wait(for pid: pid_t, _ state: Lock<State>) {
        var info = siginfo_t()
        // Looks without reaping: until the state says so, the number must stay this child's.
        while waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR {}
        let (waiters, exit) = state.withLock { state -> ([@Sendable (Exit) -> Void], Exit) in
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
            let exit: Exit = status & 0x7f == 0 ? .code((status >> 8) & 0xff) : .signal(status & 0x7f)
            guard case .running(let waiters) = state else { preconditionFailure("waited for twice") }
            state = .ended(exit)
            return (waiters, exit)
        }
        for waiter in waiters { waiter(exit) }
    }
}

/// A child could not be started.
public struct ChildProcessError: Error, CustomStringConvertible {
    /// What was to be run.
    public let program: String
    /// The system's reason.
    public let errno: Int32

    /// For messages.
    public var description: String { "cannot run \(program): \(String(cString: strerror(errno)))" }
}

/// The path of a program: itself if it has a slash, else the first of PATH that may be run.
public func findExecutable(_ program: String) -> String? {
    if program.contains("/") { return access(program, X_OK) == 0 ? program : nil }
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/local/bin:/usr/bin:/bin"
    return path.split(separator: ":").lazy.map { "\($0)/\(program)" }.first { access($0, X_OK) == 0 }
}

private func spawn(_ path: String, _ arguments: [String], _ options: ChildProcess.Options, _ pid: inout pid_t) -> Int32
{
    func strings(_ values: [String]) -> [UnsafeMutablePointer<CChar>?] { values.map { strdup($0) } + [nil] }
    func descriptor(_ output: ChildProcess.Output, inherited: Int32) -> Int32 {
        switch output {
        case .discarded, .lines: -1
        case .inherited: inherited
        case .descriptor(let descriptor): descriptor
        }
    }
    let input: Int32 = if case .descriptor(let descriptor) = options.input { descriptor } else { -1 }
    let argv = strings(arguments)
    let envp = options.environment.map { strings($0.map { "\($0.key)=\($0.value)" }) }
    defer { for string in argv + (envp ?? []) { free(string) } }
    let limits = options.limits.filter { !clinux_has_sanitizer() || !memoryLimits.contains($0.key) }.map {
        clinux_limit(resource: $0.key, soft: rlim_t($0.value), hard: rlim_t($0.value))
    }
    return limits.withUnsafeBufferPointer { limits in
        argv.withUnsafeBufferPointer { argv in
            (envp ?? []).withUnsafeBufferPointer { envp in
                path.withCString { path in
                    var how = clinux_child(
                        path: path, argv: argv.baseAddress,
                        envp: options.environment == nil ? UnsafePointer(environ) : envp.baseAddress,
                        stdin_fd: input, stdout_fd: descriptor(options.output, inherited: 1),
                        stderr_fd: descriptor(options.errors, inherited: 2),
                        death_signal: options.deathSignal ?? 0, ignore_interrupt: options.ignoresInterrupt,
                        limits: limits.baseAddress, limit_count: limits.count)
                    return clinux_spawn(&how, &pid)
                }
            }
        }
    }
}

private let memoryLimits = [Int32(RLIMIT_AS.rawValue), Int32(RLIMIT_DATA.rawValue)]

/// The environment variables of this process.
public func environmentVariables() -> [String: String] {
    var variables: [String: String] = [:]
    var next = environ
    while let text = next.pointee {
        let pair = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        if pair.count == 2 { variables[String(pair[0])] = String(pair[1]) }
        next += 1
    }
    return variables
}
