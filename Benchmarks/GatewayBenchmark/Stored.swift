import HalcyonCoding
import Measuring
import Subprocess
import TestSupport

/// Stored images beside the same files in plain nginx.
struct Stored {
    private let fixture: BenchmarkFixture
    private static let connections = 32
    private static let seconds = 4

    init(_ fixture: BenchmarkFixture) { self.fixture = fixture }

    func measure(rounds: Int) async throws {
        let folder = TemporaryFolder("files")
        let (files, images, bytes) = try await fill(folder)
        let nginx = try await Nginx.start(
            serving: folder.path,
            "access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; expires 1h;")
        var (own, others): ([Double], [Double]) = ([], [])
        do {
            for round in 0..<rounds {
                for isOwn in round % 2 == 0 ? [true, false] : [false, true] {
                    if isOwn {
                        own.append(try await rate(fixture.gateway, fixture.port, images, folder))
                    } else {
                        others.append(try await rate(nginx.process, nginx.port, files, folder))
                    }
                }
            }
        } catch {
            await nginx.stop()
            await folder.remove()
            throw error
        }
        await nginx.stop()
        await folder.remove()
        say(
            "\(images.count) stored images of \(bytes / images.count) bytes, \(Self.connections) connections, \(rounds) rounds"
        )
        say("nginx    \(Int(median(others))) requests a CPU-second")
        say("gateway  \(Int(median(own))) requests a CPU-second")
        say("the gateway is \(quotient(own, others)) of nginx")
    }

    /// Has images made, and puts their bytes into files: the paths of both.
    private func fill(_ folder: TemporaryFolder) async throws -> (files: [String], images: [String], bytes: Int) {
        var (files, images, bytes): ([String], [String], Int) = ([], [], 0)
        for number in 0..<min(fixture.photographs.count, 16) {
            let source = fixture.photographs.url(number, "stored")
            let body = try await fixture.render(source).body
            _ = folder.write(body, to: "\(number).jpg")
            files.append("/\(number).jpg")
            let draft = try JobBuilder(
                json: Array(#"{"source":"\#(source)",\#(BenchmarkFixture.fields)}"#.utf8), maximumSize: 1 << 16)
            let job = try ValidatedJob(draft, fallbackID: "a", by: JobDecoder())
            images.append(
                "/v1/images/" + job.keys[0].description.replacing("{", with: "%7B").replacing("}", with: "%7D"))
            bytes += body.count
        }
        return (files, images, bytes)
    }

    /// Requests that wrk gets answered for each second of the server's CPU time. One of them that is not 2xx ends the run.
    private func rate(_ server: ChildProcess, _ port: UInt16, _ paths: [String], _ folder: TemporaryFolder) async throws
        -> Double
    {
        let list = paths.map { "\"\($0)\"" }.joined(separator: ", ")
        let script = folder.write(
            """
            local paths = {\(list)}
            local next = 0
            function request()
              next = next % #paths + 1
              return wrk.format("GET", paths[next])
            end
            function done(summary)
              local errors = summary.errors
              io.write("done ", summary.requests, " ", errors.connect + errors.read + errors.write + errors.status + errors.timeout, "\\n")
            end
            """.utf8, to: "wrk.lua")
        let before = processorTime(of: server.pid)
        let run = try await ChildProcess.run(
            "wrk", ["-t1", "-c\(Self.connections)", "-d\(Self.seconds)s", "-s", script, "http://127.0.0.1:\(port)"],
            timeLimit: .seconds(60), outputLimit: 1 << 16)
        let said = String(decoding: run.output, as: UTF8.self)
        let spent = processorTime(of: server.pid) - before
        let words = said.split(whereSeparator: \.isNewline).last { $0.hasPrefix("done ") }?.split(separator: " ") ?? []
        guard words.count == 3, let requests = Double(words[1]), words[2] == "0", requests > 0 else {
            throw ConditionTimeout(description: "wrk: \(said)")
        }
        return requests / spent
    }
}
