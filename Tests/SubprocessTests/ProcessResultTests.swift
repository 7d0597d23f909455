import Subprocess
import TestSupport
import Testing

/// Running programs to their end.
@Suite struct ProcessResultTests {
    private static func shell(
        _ script: String, timeLimit: Duration = .patience, outputLimit: Int = 1 << 20
    ) async throws -> ProcessResult {
        try await ChildProcess.run("/bin/sh", ["-c", script], timeLimit: timeLimit, outputLimit: outputLimit)
    }

    @Test func returnsBothStreamsAndTheExitCode() async throws {
        let run = try await Self.shell("echo one; echo two >&2; exit 3")
        #expect(run.end == .exit(.code(3)) && run.output == Array("one\n".utf8) && run.errors == "two\n")
    }

    @Test func readsBothStreamsConcurrently() async throws {
        let run = try await Self.shell(
            "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2")
        #expect(run.end == .exit(.code(0)) && run.output.count == 1_000_000 && run.errors.utf8.count == 4096)
    }

    @Test(arguments: [(1000, ProcessResult.End.exit(.code(0))), (999, .tooMuch)])
    func enforcesTheOutputLimit(limit: Int, end: ProcessResult.End) async throws {
        let tail = end == .tooMuch ? "; exec sleep 1000" : ""
        let run = try await Self.shell("head -c 1000 /dev/zero\(tail)", outputLimit: limit)
        #expect(run.end == end && run.output.count == limit)
    }

    @Test func enforcesTheTimeLimit() async throws {
        let run = try await Self.shell("echo begun; exec sleep 1000", timeLimit: .milliseconds(500))
        #expect(run.end == .tooLong)
    }

    @Test func throwsWhenCancelled() async throws {
        let task = Task { try await Self.shell("exec sleep 1000") }
        try await Task.sleep(for: .milliseconds(200))
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func throwsForAMissingProgram() async {
        await #expect(throws: ChildProcessError.self) {
            try await ChildProcess.run("/no/such", [], timeLimit: .seconds(1), outputLimit: 1)
        }
    }
}
