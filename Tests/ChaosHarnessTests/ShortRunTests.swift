import Concurrency
import Foundation
import Subprocess
import TestSupport
import Testing

/// The harness as run by `make chaos`, with small numbers and a fixed seed.
@Suite(.extended, .limitedParallelism, .enabled(if: ApacheKafka.isAvailable), .serialized) struct ShortRunTests {
    private func run(_ arguments: [String]) async throws -> ChildProcess.Exit {
        var options = ChildProcess.Options()
        options.output = .inherited
        options.errors = .inherited
        return try await ChildProcess.start(BuiltExecutable.path("Chaos"), arguments, options: options).exit()
    }

    @Test func guaranteesHoldThroughAFewFaults() async throws {
        #expect(
            try await run(["run", "--seed", "1", "--seconds", "30", "--jobs", "1000", "--faults", "8", "--rate", "60"])
                == .code(0))
    }

    /// The loss of Redis makes results come back from the store. A folder needs a file system of its own.
    @Test(arguments: getuid() == 0 ? ["s3", "folder"] : ["s3"])
    func guaranteesHoldWhileTheResultStoreFails(store: String) async throws {
        let kinds = ["store-slow", "store-503", "store-full", "store-cut", "redis-flush"].flatMap { ["--only", $0] }
        #expect(
            try await run(
                ["run", "--store", store, "--seed", "2", "--seconds", "30", "--jobs", "1000", "--faults", "8"]
                    + ["--rate", "60"] + kinds) == .code(0))
    }

    /// Redis cannot be started again, because its executable is gone.
    @Test func endsWithTwoIfAFaultCannotBeEnded() async throws {
        let folder = TemporaryFolder("programs")
        let files = FileManager.default
        for directory in ["/usr/sbin", "/usr/bin"] {
            for name in try files.contentsOfDirectory(atPath: directory) {
                try? files.createSymbolicLink(
                    atPath: "\(folder.path)/\(name)", withDestinationPath: "\(directory)/\(name)")
            }
        }
        var options = ChildProcess.Options()
        options.environment = ProcessInfo.processInfo.environment.merging(["PATH": folder.path]) { $1 }
        let output = Lock<[String]>([])
        options.output = .lines { line in
            output.withLock { $0.append(line) }
            if line.contains(" jobs, ") { unlink("\(folder.path)/redis-server") }
        }
        let exit = try await ChildProcess.start(
            BuiltExecutable.path("Chaos"),
            [
                "run", "--only", "redis-kill", "--faults", "20", "--seconds", "600", "--rate", "20", "--heal-seconds",
                "3",
            ], options: options
        ).exit()
        await folder.remove()
        #expect(exit == .code(2))
        let lines = output.withLock { $0 }
        #expect(lines.contains { $0.contains("redis-kill") && $0.contains("cannot be ended") }, "\(lines)")
        #expect(lines.contains { $0.contains("stopped sending jobs") }, "\(lines)")
    }

    @Test func endsWithTwoIfAWorkerCannotBeStarted() async throws {
        var options = ChildProcess.Options()
        let errors = Lock<[String]>([])
        options.output = .inherited
        options.errors = .lines { line in errors.withLock { $0.append(line) } }
        let exit = try await ChildProcess.start(
            BuiltExecutable.path("Chaos"), ["rolling", "--from", "/bin/false"], options: options
        ).exit()
        #expect(exit == .code(2))
        try await until("the reason is printed: \(errors.withLock { $0 })") {
            errors.withLock { $0 }.contains { $0.contains("worker 0 has ended 5 times before it had started") }
        }
    }

    @Test func rejectsInvalidArguments() async throws {
        #expect(try await run(["run", "--faults", "many"]) == .code(2))
        #expect(try await run(["--help"]) == .code(0))
    }
}
