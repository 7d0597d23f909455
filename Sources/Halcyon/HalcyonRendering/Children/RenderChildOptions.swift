import Glibc
import Processes

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
