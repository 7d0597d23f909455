import Glibc
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import Subprocess
import TestSupport
import Testing

@testable import HalcyonCLI

/// What `halcyon top` shows of a given state.
@Suite struct ClusterSnapshotTests {
    private static let now: Int64 = 1_795_257_067_000

    private static func worker(_ id: String, _ jobs: [String: Int], _ tenants: [String: Int]) -> WorkerInfo {
        WorkerInfo(
            id: id, host: "node-1", pid: 7, version: "1.0", since: now - 7_300_000, threads: 4, jobs: jobs,
            tenants: tenants)
    }

    private static var snapshot: ClusterSnapshot {
        var snapshot = ClusterSnapshot(time: now)
        snapshot.waiting = WaitingJobs(
            lanes: [.high: 0, .normal: 12, .low: 1204], retries: 3, overflow: 1, scheduled: 40)
        snapshot.rates = [.high: 0, .normal: 35.25, .low: 1]
        snapshot.ended = EndedJobs.Summary(
            ready: 36.2, failed: 0.4, others: 0,
            failures: [.init(code: "not_found", count: 12), .init(code: "timeout", count: 1)], seconds: 300)
        snapshot.workers = [
            worker("a", ["normal": 3, "retry": 1], ["acme": 2, "zoo": 1]), worker("b", [:], ["acme": 1]),
        ]
        var batch = Batch(id: "summer", created: now - 90_000)
        (batch.total, batch.counts.ready, batch.counts.failed) = (8, 3, 1)
        snapshot.batches = [batch, Batch(id: "open", created: now - 600_000)]
        var pauses = Pauses()
        pauses.record(.init(isPaused: true, version: (now - 60_000) * 1000), of: .lane(.low))
        pauses.record(.init(isPaused: true, version: (now - 60_000) * 1000), of: .tenant("shop-7"))
        snapshot.pauses = pauses
        return snapshot
    }

    @Test func formatsAllSections() {
        let text = """
            2026-11-21T10:31:07  per second: 36.2 ready, 0.4 failed, 0.0 cancelled or superseded

            LANES             WAITING  JOBS/S
              high                  0     0.0
              normal               12    35.3
              low                1204     1.0  paused for 60 s
              retry topics          3
              delay topics         40
              overflow topic        1

            TENANTS   IN FLIGHT
              acme            3
              zoo             1
              shop-7          0  paused for 60 s

            BATCHES   STATE    PROGRESS           ENDED  FAILED     AGE
              summer  running  [#####     ]  50%    4/8       1    90 s
              open    open                          0/?       0  10 min

            WORKERS  HOST    THREADS  IN FLIGHT   UP
              a      node-1        4          4  2 h
              b      node-1        4          0  2 h

            FAILURES     LAST 5 min
              not_found          12
              timeout             1
            """
        #expect(Self.snapshot.lines().map(\.text).joined(separator: "\n") == text)
        #expect(Self.snapshot.lines().filter(\.isTitle).count == 5)
    }

    @Test func unknownPartsAreUnavailable() {
        var snapshot = Self.snapshot
        #expect(snapshot.isComplete)
        (snapshot.waiting, snapshot.ended) = (nil, nil)
        #expect(!snapshot.isComplete)
        let lines = snapshot.lines().map(\.text)
        #expect(lines[0] == "2026-11-21T10:31:07  ended jobs: unavailable")
        #expect(lines[2...3] == ["LANES", "  unavailable"] && lines.suffix(2) == ["FAILURES", "  unavailable"])
        #expect(lines.contains("  acme            3"))
        let nothing = ClusterSnapshot(time: Self.now).lines().map(\.text)
        #expect(nothing.count(where: { $0 == "  unavailable" }) == 5)
        snapshot.batches = []
        #expect(snapshot.lines().map(\.text).contains("  none running"))
    }

    @Test func fitsTheWindow() {
        var snapshot = Self.snapshot
        snapshot.workers = (0..<100).map { Self.worker("worker-\($0)", [:], [:]) }
        for (columns, rows) in [(80, 40), (40, 24), (20, 16), (3, 5), (1, 1)] {
            let lines = snapshot.lines(columns: columns, rows: rows)
            #expect(lines.count <= rows && lines.allSatisfy { $0.text.count <= columns })
        }
        let lines = snapshot.lines(columns: 80, rows: 40).map(\.text)
        #expect(lines.count == 40)
        // The longest section is shortened, and says by how much. The others are whole.
        #expect(lines.contains { $0.hasPrefix("  … ") && $0.hasSuffix(" more") })
        #expect(lines.contains("  overflow topic        1") && lines.last == "  timeout             1")
        #expect(snapshot.lines(columns: 12)[0].text == "2026-11-21T…")
        #expect(
            ClusterSnapshot.shortened([6, 1, 9], to: 10) == [5, 1, 4]
                || ClusterSnapshot.shortened([6, 1, 9], to: 10) == [4, 1, 5])
        #expect(ClusterSnapshot.shortened([6, 1], to: 0) == [1, 1])
    }

    @Test func controlCharactersDoNotReachTheTerminal() {
        var snapshot = Self.snapshot
        snapshot.workers = [Self.worker("a\u{1b}[2J\n\u{9b}", [:], [:])]
        let text = snapshot.lines().map(\.text).joined()
        #expect(text.contains("a?[2J??") && !text.contains("\u{1b}") && !text.contains("\u{9b}"))
    }

    @Test func writesJSON() throws {
        var writer = JSONWriter()
        writer.value(Self.snapshot)
        let json = try JSON.parse(writer.bytes, maximumSize: 1 << 16)
        let text = String(decoding: writer.bytes, as: UTF8.self)
        #expect(json.at("time") == "2026-11-21T10:31:07.000Z" && json.at("overflow") == "1")
        #expect(text.contains(#"{"lane":"normal","lag":12,"rate":35.25}"#))
        #expect(text.contains(#""failures":{"seconds":300,"codes":{"not_found":12,"timeout":1}}"#))
        #expect(text.contains(#""tenants":[{"tenant":"acme","jobs":3},{"tenant":"zoo","jobs":1}]"#))
        #expect(text.contains(#""id":"summer","state":"running""#) && text.contains(#""tenants":{"acme":2,"zoo":1}"#))
        #expect(text.contains(#""paused":{"lanes":[{"lane":"low","#))
        writer = JSONWriter()
        writer.value(ClusterSnapshot(time: Self.now))
        #expect(String(decoding: writer.bytes, as: UTF8.self) == #"{"time":"2026-11-21T10:31:07.000Z"}"#)
    }

    @Test func countsEndedJobs() {
        var ended = EndedJobs(since: nil)
        for index in 0..<20 {
            ended.add(.failed(code: "a", message: ""), at: Self.now - 2000 - Int64(index), now: Self.now)
        }
        ended.add(.failed(code: "b", message: ""), at: Self.now - 200_000, now: Self.now)
        ended.add(.cancelled, at: Self.now - 3000, now: Self.now)
        // Too old, and from a clock that is ahead: counted once the second is over.
        ended.add(.failed(code: "old", message: ""), at: Self.now - 301_000, now: Self.now)
        ended.add(.superseded(by: 1), at: Self.now + 60_000, now: Self.now)
        let summary = ended.summary(now: Self.now)
        #expect(summary.failed == 2 && summary.others == 0.1 && summary.ready == 0 && summary.seconds == 2)
        #expect(summary.failures == [.init(code: "a", count: 20), .init(code: "b", count: 1)])
        #expect(abs(ended.summary(now: Self.now + 1000).others - 0.2) < 1e-9)
        let later = ended.summary(now: Self.now + 150_000)
        #expect(later.failed == 0 && later.failures == [.init(code: "a", count: 20)])
        #expect(EndedJobs(since: Self.now - 300_000).summary(now: Self.now).seconds == 300)
    }

    @Test func ratesOfLanesAreThoseOfTheLastSeconds() {
        var rates = LaneRates()
        let start = ContinuousClock.now
        #expect(rates.add([.high: 100, .low: 5], at: start).isEmpty)
        #expect(rates.add([.high: 110, .low: 5], at: start + .seconds(2)) == [.high: 5, .low: 0])
        #expect(rates.add([.high: 110, .low: 5], at: start + .seconds(11)) == [.high: 0, .low: 0])
        // Topics were created again.
        #expect(rates.add([.high: 0, .low: 0], at: start + .seconds(12)) == [.high: 0, .low: 0])
    }

    @Test func agesAreInTheLargestUnitOfWhichThereAreTwo() {
        #expect(ClusterSnapshot.age(milliseconds: 119_000) == "119 s" && ClusterSnapshot.age(milliseconds: -1) == "0 s")
        #expect(ClusterSnapshot.age(milliseconds: 172_800_000) == "2 d")
    }
}

/// `halcyon top` on a cluster of `halcyon dev`.
@Suite(.devCluster, .limitedParallelism) struct TopCommandTests {
    private var cluster: DevClusterFixture { DevClusterFixture.current }

    @Test func showsTheCluster() async throws {
        let url = cluster.url("coffee.jpg")
        try await cluster.run("submit", url, "--width", "41", "--wait").expect(0)
        try await cluster.run("submit", cluster.url("none.jpg"), "--width", "41", "--wait").expect(1)
        let origin = RawOrigin { _ in [.text("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc"), .awaitEnd] }
        let jobs = [origin.url("/1"), origin.url("/2"), url].joined(separator: "\n")
        try await cluster.run(
            "batch", "create", "-", "--id", "top-batch", "--width", "42", "--lane", "low", "--tenant", "acme",
            input: jobs
        ).expect(0)
        try await cluster.run("pause", "--tenant", "shop-7").expect(0)
        try await until("the jobs in flight are reported, and one of three has ended") {
            let top = try await cluster.run("top", "--once", "--json", "--interval", "100ms")
            return top.exit == .code(0) && top.output.contains(#""tenants":[{"tenant":"acme","jobs":2}]"#)
                && top.output.contains(#""total":3,"ended":1,"#)
        }
        // If the servers are slow, parts are unavailable, and past failures are missing.
        let lines = try await firstValue("all parts are shown") { () async throws -> [String]? in
            let top = try await cluster.run("top", "--interval", "100ms")
            let isComplete = top.exit == .code(0) && top.output.contains("\n  not_found ")
            return isComplete ? top.lines : nil
        }
        #expect(lines.contains { $0.hasPrefix("  normal ") } && lines.contains { $0.hasPrefix("  acme ") })
        #expect(lines.contains { $0.hasPrefix("  top-batch  running  [###       ]  33%    1/3       0") }, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("  not_found ") && $0.hasSuffix(" 1") })
        #expect(lines.contains { $0.hasPrefix("  shop-7 ") && $0.contains("paused for ") })
        #expect(!lines.contains { $0.contains("\u{1b}") || $0.contains("unavailable") })
        try await cluster.run("resume", "--tenant", "shop-7").expect(0)
        try await cluster.run("batch", "cancel", "top-batch").expect(0)
        try await cluster.run("batch", "status", "top-batch", "--wait").expect(0)
        try await origin.stop()
    }

    @Test func saysWhichServerIsUnavailable() async throws {
        // If the other server is slow, its parts are unavailable, too.
        let away = try await firstValue("only Redis is unavailable") { () async throws -> Run? in
            let run = try await cluster.run("top", "--once", "--redis", "redis://127.0.0.1:1")
            return run.output.contains("  normal ") ? run : nil
        }
        away.expect(1)
        #expect(away.output.contains("WORKERS\n  unavailable\n") && away.output.contains("BATCHES\n  unavailable\n"))
        #expect(away.output.contains("  normal ") && away.output.contains("pauses unavailable"))
        let without = try await firstValue("only Kafka is unavailable") { () async throws -> Run? in
            let run = try await cluster.run("top", "--once", "--brokers", "127.0.0.1:1")
            return run.output.contains("WORKERS  ") ? run : nil
        }
        without.expect(1)
        #expect(
            without.output.contains("LANES\n  unavailable\n") && without.output.contains("FAILURES\n  unavailable\n"))
        #expect(without.output.contains("WORKERS  ") && without.errors.isEmpty, "\(without.errors)")
        try await Executable.run(["top", "--interval", "0s"], environment: cluster.environment).expect(2)
    }

    @Test func printsAJSONObjectPerInterval() async throws {
        let folder = TemporaryFolder("top")
        let process = try await Executable.start(
            ["top", "--json", "--interval", "100ms"], environment: cluster.environment, in: folder)
        try await until("three objects are printed") {
            folder.read("output").count(where: { $0 == UInt8(ascii: "\n") }) >= 3
        }
        process.send(SIGINT)
        #expect(await process.exit() == .code(0))
        let lines = String(decoding: folder.read("output"), as: UTF8.self).split(separator: "\n")
        for line in lines { #expect(try JSON.parse(Array(line.utf8), maximumSize: 1 << 20).at("time") != nil) }
        await folder.remove()
    }

    /// In a pseudoterminal of `script`.
    @Test(.enabled(if: access("/usr/bin/script", X_OK) == 0, "there is no /usr/bin/script"))
    func redrawsInPlaceAndRestoresTheTerminal() async throws {
        let folder = TemporaryFolder("top")
        var options = ChildProcess.Options()
        options.environment = cluster.environment.merging([
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder.path, "TERM": "xterm",
        ]) { $1 }
        // `script` passes on what it writes, and `timeout` sends SIGINT to the program only.
        let command =
            "stty rows 30 cols 60; echo $$ > \(folder.path)/pid; exec \(HalcyonExecutable.path) top --interval 100ms"
        let process = try await ChildProcess.start(
            "/bin/sh",
            ["-c", #"exec /usr/bin/script -qefc "$0" /dev/null </dev/null >"$1""#, command, "\(folder.path)/output"],
            options: options)
        @Sendable func output() -> String { String(decoding: folder.read("output"), as: UTF8.self) }
        try await until("the view is drawn three times") {
            output().parts(by: "\u{1b}[1mLANES").count > 3 || !process.isRunning
        }
        let pid = try #require(Int32(String(decoding: folder.read("pid"), as: UTF8.self).filter(\.isNumber)))
        kill(pid, SIGINT)
        #expect(await process.exit() == .code(0))
        let text = output()
        #expect(text.hasPrefix("\u{1b}[?1049h\u{1b}[?25l\u{1b}[H"), "\(text.prefix(200))")
        #expect(text.hasSuffix("\u{1b}[?25h\u{1b}[?1049l"))
        // Nothing scrolls: each drawing has at most as many lines as the window.
        let drawings = text.parts(by: "\u{1b}[H").dropFirst()
        #expect(drawings.allSatisfy { $0.parts(by: "\r\n").count <= 30 })
        await folder.remove()
    }
}

extension StringProtocol {
    fileprivate func parts(by separator: String) -> [SubSequence] {
        split(separator: separator, omittingEmptySubsequences: false)
    }
}
