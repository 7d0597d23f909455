import CLinux
import Glibc
import HalcyonModel
import Processes
import Threads

/// A child process that renders one picture at a time. One thread at a time talks to it.
final class RenderChild: Sendable {
    /// How often the memory of a child that renders is looked at, in milliseconds.
    private static let watchInterval: Int32 = 20

    private let process: ChildProcess
    private let socket: MessageSocket
    private let renderings = Lock(0)
    private let baseMemory: Int

    /// Starts it. It blocks.
    /// - Throws: ``ChildProcessError``, ``MessageError``.
    init(_ options: RenderChildOptions, hears: @escaping @Sendable (String) -> Void) throws {
        let (own, childs) = try MessageSocket.pair()
        defer { close(childs) }
        socket = own
        baseMemory = options.baseMemory
        process = try ChildProcess.startBlocking(
            options.program, options.arguments, options: options.process(input: childs, hears: hears))
    }

    /// For tests and logs.
    var pid: Int32 { process.pid }
    var isRunning: Bool { process.isRunning }
    /// How many it has answered.
    var answered: Int { renderings.withLock { $0 } }

    /// Asks and waits for the answer.
    /// - Parameter memory: bytes that the rendering may take.
    /// - Throws: ``MessageError``, `ended` when it dies meanwhile; ``OutgrownMemory`` when it takes more memory; whatever else shows that it is out of its mind.
    func answer(
        _ order: Turn.Order, within limits: ImageLimits, memory: Int
    ) throws -> (answer: RenderReply.Answer, privateBytes: Int) {
        try socket.send(RenderRequest.message(order, within: limits, memory: memory))
        // An eighth and 16 MiB more: the memory is an estimate.
        try wait(allowing: memory + memory / 8 + baseMemory + order.bytes + (16 << 20))
        // No encoder makes more of a picture than its pixels at 16 bits a sample, and a little.
        let most = order.variants.count * (limits.outputPixels * 8 + 1 << 20)
        guard let message = try socket.receive(MessageSocket.Limits(bytes: most)) else { throw MessageError.ended }
        let reply = try message.value(RenderReply.self)
        guard let answer = reply.answer(message.bodies) else { throw MismatchedReply() }
        renderings.withLock { $0 += 1 }
        return (answer, reply.privateBytes)
    }

    /// Waits for the answer, and looks meanwhile how much memory the child holds. The system's limit (``GrantedMemory``) counts what is
    /// reserved, touched or not, and has to be wider; and some libraries that are refused memory go on and write a damaged file.
    private func wait(allowing bytes: Int) throws(OutgrownMemory) {
        while !socket.hasInput(within: Self.watchInterval) {
            // The shadow of a sanitizer is larger than any picture.
            guard clinux_has_sanitizer() || privateBytes(of: process.pid) <= bytes else { throw OutgrownMemory() }
        }
    }

    /// Ends it, wherever it is; from any thread.
    @Sendable func kill() { process.send(SIGKILL) }

    /// Waits for its end. It blocks.
    func exit() -> ChildProcess.Exit { process.exitBlocking() }
}

/// A child holds more memory than its rendering was given.
struct OutgrownMemory: Error {}

/// A child described other pictures than it sent.
private struct MismatchedReply: Error {}

/// How children are run.
public struct RenderChildOptions: Sendable {
    /// The program: it must come to ``RenderChildProgram/run(_:)`` when it is started with ``arguments``.
    public var program: String
    /// What it is started with.
    public var arguments: [String]
    /// Bytes of memory that a child may have at most (RLIMIT_DATA of setrlimit(2)). While it renders it may have what that was
    /// given, and ``spare``.
    public var memory = 2 << 30
    /// Bytes of memory that a child holds beside what its rendering was given.
    public var baseMemory = 32 << 20
    /// Renderings after which a child is replaced, so that what its libraries lose does not add up.
    public var renderings = 500
    /// Bytes of memory of its own that a child may hold when it has nothing to do; it is replaced when it holds more.
    public var restingMemory = 48 << 20

    /// - Parameters:
    ///   - program: this very program, also when its file has been replaced meanwhile.
    public init(program: String = "/proc/self/exe", arguments: [String] = ["render-child"]) {
        self.program = program
        self.arguments = arguments
    }

    /// How the process starts.
    func process(input: Int32, hears: @escaping @Sendable (String) -> Void) -> ChildProcess.Options {
        var options = ChildProcess.Options()
        options.input = .descriptor(input)
        options.errors = .lines(hears)
        options.environment = Self.environment
        options.limits = [
            // A core would hold pictures of others, and take a second to write.
            Int32(RLIMIT_CORE.rawValue): 0,
            Int32(RLIMIT_DATA.rawValue): UInt64(memory),
            // What libvips puts on the disk, where an operator has it do so, is no larger than what may be in memory.
            Int32(RLIMIT_FSIZE.rawValue): UInt64(memory),
            Int32(RLIMIT_NOFILE.rawValue): Self.openFiles,
        ]
        return options
    }

    /// Its socket, its standard error, fonts and what libvips may put on the disk.
    private static let openFiles: UInt64 = 128

    /// What libraries look at, and none of the secrets that settings hold.
    private static let environment: [String: String] = {
        let names: Set = ["PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "GLIBC_TUNABLES"]
        let beginnings = ["LC_", "LD_", "MALLOC_", "VIPS_", "FONTCONFIG_", "XDG_", "ASAN_", "LSAN_", "TSAN_"]
        var variables = environmentVariables().filter { name, _ in
            names.contains(name) || beginnings.contains(where: name.hasPrefix)
        }
        // A child that dies is told of by its exit; fifty lines of backtrace in the worker's log say no more.
        variables["SWIFT_BACKTRACE"] = "enable=no"
        return variables
    }()
}

/// A child ended in the middle of a rendering, and nobody had asked it to.
struct ChildDeath: Error {
    let exit: ChildProcess.Exit

    /// Whose fault it is when it happens twice to a picture that has done a worker no harm.
    var failure: Failure {
        switch exit {
        case .signal(SIGSEGV), .signal(SIGBUS), .signal(SIGABRT), .signal(SIGILL), .signal(SIGTRAP), .signal(SIGFPE),
            .signal(SIGSYS):
            Failure(.corruptImage, "a decoder or an encoder crashes on this picture (\(exit))")
        case .signal(SIGXCPU):
            Failure(
                .timeout, "rendering takes more processor time than images.renderTime allows (\(exit))",
                isRetryable: false)
        default:
            // By SIGKILL the kernel ends what takes the last of the memory.
            Failure(.internal, "rendering was ended from outside, twice (\(exit))")
        }
    }
}

extension Failure {
    /// A rendering takes more memory than it could be given.
    init(beyondMemory bytes: Int) {
        self.init(.tooManyPixels, "rendering takes more than the \(bytes >> 20) MiB of memory that it may take")
    }

    /// Whether the libraries say that memory was refused to them. For a child, where nothing else is under way whose words they might be:
    /// there is no other sign that all of them give.
    var isOutOfMemory: Bool {
        (code == .corruptImage || code == .internal) && message.lowercased().contains("memory")
    }
}

/// The processor time of this process (getrlimit(2), RLIMIT_CPU).
///
/// A parent ends a child that takes too long, by the clock. It cannot while it stands still itself, or when it
/// hangs: then the child ends by this.
enum ProcessorTime {
    /// Looked up once: each rendering is given a limit of its own.
    private static let processors = MachineShare.processors

    /// Allows so much more, on each processor: encoders have threads of their own. What takes more is ended by SIGXCPU.
    static func limit(to time: Duration) {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        let used = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &limit) == 0 else { return }
        // Two seconds more, for what is rounded off.
        limit.rlim_cur = min(
            limit.rlim_max, rlim_t(used + processors * Int(time.components.seconds + 1) + 2))
        setrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &limit)
    }
}
