import Glibc
import TestSupport
import Testing

/// `halcyon dev --demo`, run with nothing but the program.
@Suite(.limitedParallelism) struct DemoTests {
    @Test func writesTheResultsOfSampleJobsToAFolder() async throws {
        let folder = TemporaryFolder("demo")
        let process = try await Executable.start(
            [
                "dev", "--demo", "--json", "--log-level", "error", "--output", "../my results", "--set",
                "gateway.listen=127.0.0.1:0",
            ], in: folder)
        // One line with the addresses and one for each job.
        try await until("all jobs have ended") {
            !process.isRunning || folder.read("output").count { $0 == UInt8(ascii: "\n") } == 10
        }
        process.send(SIGINT)
        let run = await Executable.result(of: process, in: folder).expect(0)
        run.expectNoErrors()
        let lines = try run.json()
        #expect(lines.first?.at("gateway") != nil)
        #expect(lines.dropFirst().map { $0.at("outcome") } == Array(repeating: "ready", count: 9))
        let jpegs = ["fill", "fit", "stretch", "center", "crop", "gray"].map { "\($0)-240x180.jpg" }
        for name in jpegs { #expect(folder.read("my results/\(name)").starts(with: [0xff, 0xd8]), "\(name)") }
        #expect(Set(jpegs.map { folder.read("my results/\($0)") }).count == jpegs.count, "all images differ")
        for name in ["round-180x180.png", "avatar-180x180.png"] {
            #expect(folder.read("my results/\(name)").starts(with: [0x89, 0x50]), "\(name)")
        }
        for name in ["small-320x213.webp", "small-160x106.webp", "small-80x53.webp"] {
            #expect(folder.read("my results/\(name)").starts(with: "RIFF".utf8), "\(name)")
        }
        await folder.remove()
    }

    @Test func wrongSettingsAndTakenPortsEndWithAnError() async throws {
        let keys = try await Executable.run(["dev", "--set", "gateway.keys.a=short"]).expect(2)
        #expect(keys.errors.hasPrefix("halcyon: gateway.keys.a: expected 16 or more"), "\(keys.errors)")
        let other = try SampleImages.origin()
        let listen = try await Executable.run(["dev", "--set", "gateway.listen=127.0.0.1:\(other.port)"]).expect(1)
        try await other.stop()
        #expect(listen.errors.contains("Address already in use") && !listen.errors.contains("Assertion"))
    }

    @Test func failsIfTheFolderCannotBeCreated() async throws {
        let run = try await Executable.run(["dev", "--demo", "--output", "/dev/null/demo"])
        run.expect(1)
        #expect(run.errors.contains("/dev/null"))
        try await Executable.run(["dev", "--output", "demo"]).expect(2)
    }
}
