import CLinux
import Concurrency
import Glibc
import HalcyonModel
import Subprocess

/// A child process that renders one image at a time.
final class RenderProcess: PooledProcess {
    /// The interval at which the memory of a busy render process is checked, in milliseconds.
    private static let watchInterval: Int32 = 20

    private let process: ChildProcess
    private let socket: MessageSocket
    private let state = Lock((renderings: 0, reservedBytes: 0))
    private let baseMemory: Int

    /// Starts the process. Blocks the calling thread.
    /// - Throws: ``ChildProcessError`` or ``MessageError``.
    init(_ options: RenderProcessOptions, hears: @escaping @Sendable (String) -> Void) throws {
        let (own, childs) = try MessageSocket.pair()
        defer { close(childs) }
        socket = own
        baseMemory = options.baseMemory
        process = try ChildProcess.startBlocking(
            options.program, options.arguments, options: options.process(input: childs, hears: hears))
    }

    var pid: Int32 { process.pid }
    var isRunning: Bool { process.isRunning }
    var answered: Int { state.withLock { $0.renderings } }
    /// The memory that the process had reserved after its last rendering, in bytes (RLIMIT_DATA of setrlimit(2)).
    var reservedBytes: Int { state.withLock { $0.reservedBytes } }

    /// Sends a request and waits for the reply.
    /// - Parameter memory: The maximum memory of the rendering, in bytes.
    /// - Throws: ``MessageError``, `ended` if the process crashes; ``OutgrownMemory`` if it exceeds its memory; other
    ///   errors if its reply is invalid.
    func answer(
        _ order: RenderTask.Input, within limits: ImageLimits, memory: Int
    ) throws -> (answer: RenderReply.RenderResponse, privateBytes: Int) {
        try socket.send(RenderRequest.message(order, within: limits, memory: memory))
        // An eighth and 16 MiB more, because the memory is an estimate.
        try wait(allowing: memory + memory / 8 + baseMemory + order.bytes + (16 << 20))
        // No encoder produces more bytes than the pixels at 16 bits per sample, plus a small amount.
        let most = max(1, order.variants.count) * (limits.outputPixels * 8 + 1 << 20)
        guard let message = try socket.receive(MessageSocket.Limits(bytes: most)) else { throw MessageError.ended }
        let reply = try message.value(RenderReply.self)
        guard let answer = reply.answer(message.bodies) else { throw MismatchedReply() }
        state.withLock { $0 = ($0.renderings + 1, reply.reservedBytes) }
        return (answer, reply.privateBytes)
    }

    /// Waits for the reply and checks the memory of the render process meanwhile. The system limit (``GrantedMemory``)
    /// counts reserved memory whether or not it is used, and therefore has to be higher. Also, some libraries continue
    /// after a failed allocation and write a damaged file.
    private func wait(allowing bytes: Int) throws(OutgrownMemory) {
        // A sanitizer needs several times as much, and more memory for itself.
        let limit = clinux_has_sanitizer() ? 4 * bytes + 1 << 30 : bytes
        while !socket.hasInput(within: Self.watchInterval) {
            guard privateBytes(of: process.pid) <= limit else { throw OutgrownMemory() }
        }
    }

    @Sendable func kill() { process.send(SIGKILL) }

    func exit() -> ChildProcess.Exit { process.exitBlocking() }
}

/// The error of a render process that exceeds the memory of its rendering.
struct OutgrownMemory: Error {}

/// The error of a reply whose bodies do not match its description.
private struct MismatchedReply: Error {}

/// The options of render processes.
public struct RenderProcessOptions: Sendable {
    /// The program. It must call ``RenderProcessProgram/run(_:)`` when it is started with ``arguments``.
    public var program: String
    /// The arguments of the program.
    public var arguments: [String]
    /// The maximum memory of a render process, in bytes (RLIMIT_DATA of setrlimit(2)). While it renders, the limit is
    /// the memory of the rendering plus a reserve and what the process has reserved before.
    public var memory = 2 << 30
    /// The memory of a render process without a rendering, in bytes.
    public var baseMemory = 32 << 20
    /// The number of renderings after which a render process is replaced, so that memory leaks in libraries do not
    /// accumulate.
    public var renderings = 500
    /// The maximum private memory of an idle render process, in bytes. A process that exceeds it is replaced.
    public var restingMemory = 48 << 20

    /// - Parameters:
    ///   - program: The program to start. By default the running program, even if its file has been replaced in the
    ///     meantime.
    public init(program: String = "/proc/self/exe", arguments: [String] = ["render-child"]) {
        self.program = program
        self.arguments = arguments
    }

    /// Returns the options for starting the process.
    func process(input: Int32, hears: @escaping @Sendable (String) -> Void) -> ChildProcess.Options {
        var options = ChildProcess.Options()
        options.input = .descriptor(input)
        options.errors = .lines(hears)
        options.environment = Self.environment
        options.limits = [
            // A core dump would contain users' images, and take a second to write.
            Int32(RLIMIT_CORE.rawValue): 0,
            Int32(RLIMIT_DATA.rawValue): UInt64(memory),
            // Temporary files of libvips, if the operator enables them, are not larger than the memory limit.
            Int32(RLIMIT_FSIZE.rawValue): UInt64(memory),
            Int32(RLIMIT_NOFILE.rawValue): Self.openFiles,
        ]
        return options
    }

    /// The maximum number of open files: its socket, its standard error, fonts and temporary files of libvips.
    private static let openFiles: UInt64 = 128

    /// The environment variables that libraries use, without the secrets in settings.
    private static let environment: [String: String] = {
        let names: Set = ["PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "GLIBC_TUNABLES"]
        let beginnings = [
            "LC_", "LD_", "MALLOC_", "TCMALLOC_", "VIPS_", "FONTCONFIG_", "XDG_", "ASAN_", "LSAN_", "TSAN_",
        ]
        var variables = environmentVariables().filter { name, _ in
            names.contains(name) || beginnings.contains(where: name.hasPrefix)
        }
        // A crash is reported by its exit status. Fifty lines of backtrace in the worker's log would add nothing.
        variables["SWIFT_BACKTRACE"] = "enable=no"
        return variables
    }()
}

/// The unexpected exit of a render process during a rendering.
struct RenderProcessCrash: Error {
    let exit: ChildProcess.Exit

    /// The error to report if the same image has crashed two render processes without affecting a worker.
    var failure: JobError {
        switch exit {
        case .signal(SIGSEGV), .signal(SIGBUS), .signal(SIGABRT), .signal(SIGILL), .signal(SIGTRAP), .signal(SIGFPE),
            .signal(SIGSYS):
            JobError(.corruptImage, "a decoder or encoder crashes on this image (\(exit))")
        case .signal(SIGXCPU):
            JobError(
                .timeout, "rendering exceeds the CPU time that images.renderTimeout allows (\(exit))",
                isRetryable: false)
        default:
            // The kernel kills processes with SIGKILL when memory runs out.
            JobError(.internal, "the render process was killed twice (\(exit))")
        }
    }
}

extension JobError {
    /// Creates the error of a rendering that exceeds the maximum memory.
    init(beyondMemory bytes: Int) {
        self.init(.tooManyPixels, "rendering needs more than the maximum of \(bytes >> 20) MiB of memory")
    }

    /// True if the libraries report a failed allocation. Intended for render processes, in which no other rendering
    /// could have caused the message. There is no other indication that all libraries give.
    var isOutOfMemory: Bool {
        (code == .corruptImage || code == .internal) && message.lowercased().contains("memory")
    }
}

/// The CPU time limit of this process (getrlimit(2), RLIMIT_CPU).
///
/// The parent kills a render process that exceeds its deadline. It cannot do so while it is suspended or hangs. This
/// limit then ends the process.
enum CPULimit {
    /// Determined once, because each rendering sets a limit.
    private static let processors = ResourceLimits.processors

    /// Allows this amount of additional time on each processor, because encoders use several threads. A process that
    /// exceeds it receives SIGXCPU.
    static func limit(to time: Duration) {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        let used = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &limit) == 0 else { return }
        // Two more seconds allow for rounding.
        limit.rlim_cur = min(
            limit.rlim_max, rlim_t(used + processors * Int(time.components.seconds + 1) + 2))
        setrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &limit)
    }
}

/// The main function of a render process. Its standard input is the socket to its parent, in both directions.
public enum RenderProcessProgram {
    /// Serves requests on the calling thread until the parent closes the socket.
    /// - Parameter extensions: The extensions of the parent's renderer.
    /// - Returns: The exit code of the process.
    public static func run(_ extensions: Extensions = Extensions()) -> Int32 {
        // If the process group is asked to stop, the parent decides, because it may want this rendering to finish.
        signal(SIGTERM, SIG_IGN)
        clinux_name_thread("render-child")
        makeFirstVictim()
        // The shadow of a sanitizer is larger than any limit.
        let memory = clinux_has_sanitizer() ? nil : GrantedMemory()
        let socket = MessageSocket(owning: STDIN_FILENO)
        do {
            while let message = try socket.receive(MessageSocket.Limits(bytes: .max)) {
                try socket.send(answer(to: message, within: memory, extensions))
            }
            return 0
        } catch MessageError.ended {
            return 0
        } catch {
            complain("render-child is for internal use by other commands: \(error)")
            return 2
        }
    }

    private static func answer(
        to message: MessageSocket.Message, within memory: GrantedMemory?, _ extensions: Extensions
    ) throws -> MessageSocket.Message {
        let request = try message.value(RenderRequest.self)
        CPULimit.limit(to: request.limits.renderTime)
        let asked = message.bodies.reduce(0) { $0 + $1.count }
        let scarcity = memory?.limit(to: request.memory + asked) ?? .max
        let answer = try answer(to: request, message.bodies, scarceFrom: scarcity, extensions)
        clinux_release_free_memory()
        // Most of the memory under a sanitizer is its own.
        guard memory != nil else { return try RenderReply.message(answer, privateBytes: 0, reservedBytes: 0) }
        // The source and the files are freed with the messages.
        let kept = max(0, privateBytes() - asked - answer.bytes)
        return try RenderReply.message(answer, privateBytes: kept, reservedBytes: dataBytes())
    }

    /// - Parameter scarcity: The private memory in bytes beyond which a failed allocation may be the cause of a failure.
    private static func answer(
        to request: RenderRequest, _ bodies: [[UInt8]], scarceFrom scarcity: Int, _ extensions: Extensions
    ) throws -> RenderReply.RenderResponse {
        let (result, peak) = peakPrivateBytes { () -> Result<RenderReply.RenderResponse, any Error> in
            Result {
                let (renderer, plan) = try request.plan(bodies, extensions)
                guard plan.memory <= request.memory else { return .needs(memory: plan.memory) }
                return .rendered(try renderer.render(plan, assets: request.assets(bodies), faces: request.faces))
            }
        }
        do {
            return try result.get()
        } catch let failure as JobError {
            // Some encoders fail without telling that an allocation failed.
            let isExhausted = failure.code == .internal && peak.map { $0 > scarcity } == true
            guard failure.isOutOfMemory || isExhausted else { return .failed(failure) }
            let most = request.limits.memory
            guard request.memory >= most else { return .needs(memory: most) }
            return .failed(JobError(beyondMemory: request.memory))
        }
    }

    private static func complain(_ text: String) {
        let line = Array("\(text)\n".utf8)
        _ = write(STDERR_FILENO, line, line.count)
    }
}

/// Makes the kernel kill a process, and not the worker, when the machine runs out of memory (proc(5), oom_score_adj).
/// Does nothing if /proc is not writable.
/// - Parameter pid: The process id; nil for this process.
func makeFirstVictim(of pid: pid_t? = nil) {
    let descriptor = open("/proc/\(pid.map(String.init) ?? "self")/oom_score_adj", O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    _ = write(descriptor, "1000", 4)
    close(descriptor)
}
