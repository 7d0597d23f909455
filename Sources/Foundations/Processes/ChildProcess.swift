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
    }

    /// How a child starts; the defaults suit a private server.
    public struct Options: Sendable {
        /// The whole environment; nil for this process's own.
        public var environment: [String: String]?
        /// Standard output.
        public var output = Output.discarded
        /// Standard error.
        public var errors = Output.discarded
        /// Sent to the child when this process is gone; nil lets it live on.
        public var deathSignal: Int32? = SIGKILL
        /// Keeps a terminal's Ctrl-C from the child, which its parent then stops in its own time.
        public var ignoresInterrupt = true
        /// Limits of setrlimit(2), by resource (`RLIMIT_AS`, …).
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
        case starting
        case running(waiters: [CheckedContinuation<Exit, Never>])
        case ended(Exit)
        case failed(errno: Int32)
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
        guard let path = findExecutable(program) else {
            throw ChildProcessError(program: program, errno: ENOENT)
        }
        let state = Lock(State.starting)
        let result: Result<pid_t, ChildProcessError> = await withCheckedContinuation { continuation in
            _ = WorkThread(name: "child") {
                var pid: pid_t = 0
                let error = spawn(path, [program] + arguments, options, &pid)
                if error != 0 {
                    continuation.resume(returning: .failure(ChildProcessError(program: program, errno: error)))
                    return
                }
                state.withLock { $0 = .running(waiters: []) }
                continuation.resume(returning: .success(pid))
                wait(for: pid, state)
            }
        }
        return ChildProcess(pid: try result.get(), state: state)
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
        await withCheckedContinuation { continuation in
            let ended: Exit? = state.withLock { state in
                switch state {
                case .running(let waiters):
                    state = .running(waiters: waiters + [continuation])
                    return nil
                case .ended(let exit): return exit
                case .starting, .failed: preconditionFailure("a child that never started")
                }
            }
            if let ended { continuation.resume(returning: ended) }
        }
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
        let (waiters, exit) = state.withLock { state -> ([CheckedContinuation<Exit, Never>], Exit) in
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
            let exit: Exit = status & 0x7f == 0 ? .code((status >> 8) & 0xff) : .signal(status & 0x7f)
            guard case .running(let waiters) = state else { preconditionFailure("waited for twice") }
            state = .ended(exit)
            return (waiters, exit)
        }
        for waiter in waiters { waiter.resume(returning: exit) }
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
        case .discarded: -1
        case .inherited: inherited
        case .descriptor(let descriptor): descriptor
        }
    }
    let argv = strings(arguments)
    let envp = options.environment.map { strings($0.map { "\($0.key)=\($0.value)" }) }
    defer { for string in argv + (envp ?? []) { free(string) } }
    let limits = options.limits.map {
        clinux_limit(resource: $0.key, soft: rlim_t($0.value), hard: rlim_t($0.value))
    }
    return limits.withUnsafeBufferPointer { limits in
        argv.withUnsafeBufferPointer { argv in
            (envp ?? []).withUnsafeBufferPointer { envp in
                path.withCString { path in
                    var how = clinux_child(
                        path: path, argv: argv.baseAddress,
                        envp: options.environment == nil ? UnsafePointer(environ) : envp.baseAddress,
                        stdin_fd: -1, stdout_fd: descriptor(options.output, inherited: 1),
                        stderr_fd: descriptor(options.errors, inherited: 2),
                        death_signal: options.deathSignal ?? 0, ignore_interrupt: options.ignoresInterrupt,
                        limits: limits.baseAddress, limit_count: limits.count)
                    return clinux_spawn(&how, &pid)
                }
            }
        }
    }
}
