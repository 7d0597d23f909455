import CLinux
import Concurrency
import Glibc

/// A child process.
///
/// One thread spawns the child and waits for it. So the parent-death signal, which Linux ties to the spawning *thread*
/// (prctl(2), PR_SET_PDEATHSIG), is sent when this process ends for any reason, and at no other time.
public final class ChildProcess: Sendable {
    /// The destination of an output stream of the child.
    public enum Output: Sendable {
        /// Discards the output (/dev/null).
        case discarded
        /// Uses this process's stream.
        case inherited
        /// Writes to a descriptor that stays open until ``ChildProcess/start(_:_:options:)`` has returned.
        case descriptor(Int32)
        /// Passes each line to a function, which a dedicated thread calls until the child has closed the stream. Lines
        /// longer than 4 KiB are split.
        indirect case lines(@Sendable (String) -> Void)
    }

    /// The source of the child's standard input.
    public enum Input: Sendable {
        /// Empty input (/dev/null).
        case nothing
        /// Reads from a descriptor that stays open until ``ChildProcess/start(_:_:options:)`` has returned. A socket
        /// works in both directions.
        case descriptor(Int32)
    }

    /// Options for starting a child. The defaults suit a private server.
    public struct Options: Sendable {
        /// The whole environment; nil for this process's environment.
        public var environment: [String: String]?
        /// The standard input.
        public var input = Input.nothing
        /// The standard output.
        public var output = Output.discarded
        /// The standard error.
        public var errors = Output.discarded
        /// The signal sent to the child when this process ends; nil for none.
        public var deathSignal: Int32? = SIGKILL
        /// True if the child ignores a terminal's Ctrl-C, so that its parent stops it.
        public var ignoresInterrupt = true
        /// Limits of setrlimit(2), by resource (`RLIMIT_AS`, …). Under a sanitizer memory limits are not set, because
        /// its shadow memory exceeds any of them.
        public var limits: [Int32: UInt64] = [:]
        /// Creates the default options.
        public init() {}
    }

    /// The exit status of a child.
    public enum Exit: Equatable, Sendable, CustomStringConvertible {
        /// The child exited with this code.
        case code(Int32)
        /// The child was killed by this signal.
        case signal(Int32)

        /// The status as text: `exit code 1` or `signal 9`.
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

    /// The child's process id. After its exit the id may be reused, so use ``send(_:)``, which checks that.
    public let pid: pid_t
    private let state: Lock<State>

    private init(pid: pid_t, state: Lock<State>) {
        self.pid = pid
        self.state = state
    }

    /// Starts `program` (a path, or a name to look up in PATH).
    /// - Throws: ``ChildProcessError`` if the program does not exist or cannot be run.
    public static func start(
        _ program: String, _ arguments: [String] = [], options: Options = Options()
    ) async throws(ChildProcessError) -> ChildProcess {
        // Passed under a lock: the thread sanitizer sees no ordering if a continuation is resumed before its task
        // waits.
        let result = Lock<Result<ChildProcess, ChildProcessError>?>(nil)
        await withCheckedContinuation { continuation in
            launch(program, arguments, options) { launched in
                result.withLock { $0 = launched }
                continuation.resume()
            }
        }
        return try result.withLock { $0 }!.get()
    }

    /// Starts a child like ``start(_:_:options:)``, for threads that may block. Never call it on a task's thread.
    /// - Throws: ``ChildProcessError`` if the program does not exist or cannot be run.
    public static func startBlocking(
        _ program: String, _ arguments: [String] = [], options: Options = Options()
    ) throws(ChildProcessError) -> ChildProcess {
        let answer = BlockingPromise<Result<ChildProcess, ChildProcessError>>()
        launch(program, arguments, options) { answer.fulfill($0) }
        return try answer.wait().get()
    }

    private static func launch(
        _ program: String, _ arguments: [String], _ options: Options,
        _ tell: @escaping @Sendable (Result<ChildProcess, ChildProcessError>) -> Void
    ) {
        _ = NamedThread(name: "child") {
            guard let path = findExecutable(program) else {
                return tell(.failure(ChildProcessError(program: program, errno: ENOENT)))
            }
            var listeners: [LineReader] = []
            var options = options
            for stream in [\Options.output, \Options.errors] {
                guard case .lines(let tell) = options[keyPath: stream], let listener = LineReader(tell) else {
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

    /// True if the child has not exited yet.
    public var isRunning: Bool {
        state.withLock { if case .running = $0 { true } else { false } }
    }

    /// Sends a signal. Has no effect if the child has exited.
    public func send(_ signal: Int32) {
        state.withLock { state in
            if case .running = state { kill(pid, signal) }
        }
    }

    /// Waits for the child to exit.
    @discardableResult
    public func exit() async -> Exit {
        await withCheckedContinuation { continuation in whenEnded { continuation.resume(returning: $0) } }
    }

    /// Waits like ``exit()``, for threads that may block. Never call it on a task's thread.
    @discardableResult
    public func exitBlocking() -> Exit {
        let answer = BlockingPromise<Exit>()
        whenEnded { answer.fulfill($0) }
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

    /// Stops the child with SIGTERM, and with SIGKILL after `grace`.
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
        // Wait without reaping: the process id must remain this child's until the state is updated.
        while waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR {}
        let (waiters, exit) = state.withLock { state -> ([@Sendable (Exit) -> Void], Exit) in
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
            let exit: Exit = status & 0x7f == 0 ? .code((status >> 8) & 0xff) : .signal(status & 0x7f)
            guard case .running(let waiters) = state else { preconditionFailure("the child's exit was handled twice") }
            state = .ended(exit)
            return (waiters, exit)
        }
        for waiter in waiters { waiter(exit) }
    }
}

/// An error starting a child.
public struct ChildProcessError: Error, CustomStringConvertible {
    /// The program.
    public let program: String
    /// The system's reason.
    public let errno: Int32

    /// The program and the system's error message.
    public var description: String { "cannot run \(program): \(String(cString: strerror(errno)))" }
}

/// The path of a program: the program itself if it contains a slash, otherwise the first executable of that name in
/// PATH.
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
