import Glibc
import JSON
import Subprocess
import TestSupport
import Testing

/// The built program, run as a child process.
enum Executable {
    /// Starts the program without waiting for its exit.
    /// - Parameters:
    ///   - input: The path of a file for standard input. The default is empty input.
    ///   - folder: The folder to which `output` and `errors` are written. The program runs in its subfolder `work`.
    static func start(
        _ arguments: [String], input: String = "/dev/null", environment: [String: String] = [:],
        in folder: TemporaryFolder
    ) async throws -> ChildProcess {
        var options = ChildProcess.Options()
        options.environment = ["PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder.path, "TMPDIR": folder.path]
            .merging(environment) { $1 }
        // A shell sets the working folder and standard input, and then executes the program.
        let script =
            #"cd "$1" && input=$2 program=$3 && shift 3 && exec "$program" "$@" <"$input" >../output 2>../errors"#
        let work = "\(folder.path)/work"
        mkdir(work, 0o700)
        return try await ChildProcess.start(
            "/bin/sh", ["-c", script, "sh", work, input, HalcyonExecutable.path] + arguments, options: options)
    }

    /// Runs the program and waits for its exit.
    static func run(
        _ arguments: [String], input: String? = nil, environment: [String: String] = [:]
    ) async throws -> Run {
        let folder = TemporaryFolder("run")
        let file = input.map { folder.write($0.utf8, to: "input") } ?? "/dev/null"
        let process = try await start(arguments, input: file, environment: environment, in: folder)
        let run = await result(of: process, in: folder)
        await folder.remove()
        return run
    }

    /// Waits for the exit of a program that was started in a folder, and returns what it has written there.
    static func result(of process: ChildProcess, in folder: TemporaryFolder) async -> Run {
        let exit = await process.exit()
        return Run(exit: exit, bytes: folder.read("output"), errors: text(folder.read("errors")))
    }

    /// Starts the program, interrupts it after `body`, and waits for its exit.
    static func runInterrupted(
        _ arguments: [String], environment: [String: String] = [:], after body: (TemporaryFolder) async throws -> Void
    ) async throws -> Run {
        let folder = TemporaryFolder("interrupted")
        let process = try await start(arguments, environment: environment, in: folder)
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(folder)) } catch { outcome = .failure(error) }
        process.send(SIGINT)
        let run = await result(of: process, in: folder)
        await folder.remove()
        try outcome.get()
        return run
    }

    static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}

/// The result of a run.
struct Run: Sendable {
    let exit: ChildProcess.Exit
    /// Standard output.
    let bytes: [UInt8]
    /// Standard error.
    let errors: String

    var output: String { Executable.text(bytes) }
    var lines: [String] { output.split(separator: "\n").map(String.init) }

    /// Parses each line of the output as JSON.
    func json() throws -> [JSONElement] { try lines.map { try JSON.parse(Array($0.utf8), maximumSize: 1 << 24) } }

    /// Expects this exit code.
    @discardableResult
    func expect(_ code: Int32, sourceLocation: SourceLocation = #_sourceLocation) -> Run {
        #expect(exit == .code(code), "\(output)\n\(errors)", sourceLocation: sourceLocation)
        return self
    }

    /// Expects that standard error is empty, except for reports that the first event is late, as on a busy machine.
    func expectNoErrors(sourceLocation: SourceLocation = #_sourceLocation) {
        let lines = errors.split(separator: "\n").filter { !$0.contains("no events for these jobs within") }
        #expect(lines.isEmpty, sourceLocation: sourceLocation)
    }
}

extension JSONElement {
    /// Returns the string or the JSON at a path of names, or nil if there is none.
    func at(_ path: String...) -> String? {
        var element: JSONElement? = self
        for name in path { element = element?.member(name) }
        return element.map { (try? $0.string()) ?? Executable.text($0.bytes) }
    }
}
