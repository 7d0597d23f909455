import Glibc
import Subprocess
import Testing

@Suite struct ChildProcessTests {
    @Test func reportsTheExitStatus() async throws {
        #expect(try await ChildProcess.start("sh", ["-c", "exit 3"]).exit() == .code(3))
        let sleeper = try await ChildProcess.start("sleep", ["1000"])
        #expect(sleeper.isRunning)
        sleeper.send(SIGKILL)
        #expect(await sleeper.exit() == .signal(SIGKILL))
        #expect(!sleeper.isRunning)
        #expect(await sleeper.exit() == .signal(SIGKILL))
    }

    @Test func throwsForProgramsThatCannotBeRun() async {
        await #expect(throws: ChildProcessError.self) { try await ChildProcess.start("no-such-program-here") }
        await #expect(throws: ChildProcessError.self) { try await ChildProcess.start("/etc/passwd") }
    }

    @Test func stopsAChildThatIgnoresSIGTERM() async throws {
        let script = "trap '' TERM; echo ready; while :; do sleep 0.01; done"
        let child = try #require(try await ChildProcess.start("sh", ["-c", script], readyWhenItSays: "ready"))
        #expect(await child.stop(grace: .milliseconds(100)) == .signal(SIGKILL))
    }

    @Test func waitsForTheReadinessMessage() async throws {
        let server = try await ChildProcess.start(
            "sh", ["-c", "printf 'I am re'; sleep 0.05; echo ady.; exec sleep 100"], readyWhenItSays: "ready.")
        #expect(server?.isRunning == true)
        await server?.stop()
        let failing = try await ChildProcess.start("sh", ["-c", "echo no port"], readyWhenItSays: "ready.")
        #expect(failing == nil)
        await #expect(throws: ChildProcessError.self) {
            try await ChildProcess.start("no-such-program-here", [], readyWhenItSays: "ready.")
        }
    }

    @Test func keepsReadingOutputAfterReadiness() async throws {
        // Far more than a socket buffer holds. The exit code shows that all of it was read.
        let server = try await ChildProcess.start(
            "sh", ["-c", "echo ready; head -c 3000000 /dev/zero && exit 7"], readyWhenItSays: "ready")
        #expect(await server?.exit() == .code(7))
    }

    @Test func setsLimits() async throws {
        var options = ChildProcess.Options()
        options.limits = [Int32(RLIMIT_NOFILE.rawValue): 17]
        #expect(try await ChildProcess.start("sh", ["-c", "exit $(ulimit -n)"], options: options).exit() == .code(17))
    }

    @Test func passesOutputAndEnvironment() async throws {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        var options = ChildProcess.Options()
        options.environment = ["WORD": "halcyon"]
        options.output = .descriptor(ends[1])
        #expect(
            try await ChildProcess.start("/bin/sh", ["-c", "printf %s $WORD"], options: options).exit() == .code(0))
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = read(ends[0], &bytes, bytes.count)
        #expect(String(decoding: bytes.prefix(count), as: UTF8.self) == "halcyon")
        close(ends[0])
        close(ends[1])
    }

    @Test func childInheritsNoOtherDescriptors() async throws {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        let child = try await ChildProcess.start("sleep", ["1000"])
        close(ends[1])
        // No process has the write end open, except children of other tests between fork and exec.
        var byte: UInt8 = 0
        var reading = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
        #expect(poll(&reading, 1, 120_000) == 1)
        #expect(read(ends[0], &byte, 1) == 0)
        close(ends[0])
        await child.stop()
    }

    @Test func childOutlivesTheTaskThatStartedIt() async throws {
        let child = try await Task.detached { try await ChildProcess.start("sleep", ["1000"]) }.value
        try await Task.sleep(for: .milliseconds(200))
        #expect(child.isRunning)
        await child.stop()
    }
}
