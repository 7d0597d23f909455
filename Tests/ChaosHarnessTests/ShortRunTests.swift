import Subprocess
import TestSupport
import Testing

/// The harness as run by `make chaos`, with small numbers and a fixed seed.
@Suite(.limitedParallelism, .enabled(if: ApacheKafka.isAvailable), .serialized) struct ShortRunTests {
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

    @Test func rejectsInvalidArguments() async throws {
        #expect(try await run(["run", "--faults", "many"]) == .code(2))
        #expect(try await run(["--help"]) == .code(0))
    }
}
