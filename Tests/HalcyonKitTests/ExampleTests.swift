import Foundation
import Glibc
import HalcyonKit
import Subprocess
import TestSupport
import Testing

extension ClusterTests {
    /// The clients and examples in other languages, run from the repository without changes.
    @Suite(.extended) struct ExampleTests {
        private var cluster: ClusterFixture { ClusterFixture.current }
        private static let root = Repository.path("")

        /// A language of clients and examples.
        enum Language: String, CaseIterable, Sendable, CustomTestStringConvertible {
            case python, javascript

            var testDescription: String { rawValue }

            /// Returns the command that runs a program in `Tests/Clients`.
            func command(for name: String) -> [String] {
                switch self {
                case .python: ["python3", "\(root)/Tests/Clients/\(name).py"]
                case .javascript:
                    ["node", "\(root)/Tests/Clients/\(name).mjs", "\(root)/clients/javascript/index.js"]
                }
            }

        }

        /// Starts a command that writes `output` and `errors` to the folder.
        private func start(_ command: [String], in folder: TemporaryFolder) async throws -> ChildProcess {
            var options = ChildProcess.Options()
            options.environment = [
                "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder.path, "TMPDIR": folder.path,
                "PYTHONPATH": "\(Self.root)/clients/python/src", "PYTHONDONTWRITEBYTECODE": "1",
                // Lets Go reuse what it has compiled.
                "GOCACHE": "\(Self.root)/.build/go", "GOWORK": "\(Self.root)/Examples/go/go.work",
            ]
            let line = #"cd "$0" && exec "$@" >output 2>errors"#
            return try await ChildProcess.start(
                "/bin/sh", ["-c", line, folder.path] + command, options: options)
        }

        private func text(_ name: String, in folder: TemporaryFolder) -> String {
            String(decoding: folder.read(name), as: UTF8.self)
        }

        /// The commands of the examples.
        static let examples = [
            [BuiltExecutable.path("client-example")], ["python3", "\(root)/Examples/python/example.py"],
            ["node", "\(root)/Examples/javascript/example.mjs"], ["go", "run", "\(root)/Examples/go/example.go"],
        ]

        @Test(arguments: examples) func exampleWritesTheImageOrReportsTheFailure(example: [String]) async throws {
            let folder = TemporaryFolder("example")
            let gateway = cluster.gateway.absoluteString
            let good = try await start(
                example + [gateway, "\(cluster.origin.url)/coffee.jpg", "cup.jpg"], in: folder)
            #expect(await good.exit() == .code(0), "\(text("errors", in: folder))")
            #expect(text("output", in: folder).hasSuffix("ready\n"))
            #expect(folder.read("cup.jpg").starts(with: [0xff, 0xd8]))
            let bad = try await start(
                example + [gateway, "\(cluster.origin.url)/none.jpg", "none.jpg"], in: folder)
            #expect(await bad.exit() == .code(1))
            #expect(text("errors", in: folder).hasPrefix("failed: not_found: "), "\(text("errors", in: folder))")
            #expect(text("output", in: folder).hasSuffix("failed\n"))
            await folder.remove()
        }

        @Test(arguments: examples + [["\(root)/Examples/shell/http.sh"]])
        func exampleWritesUncacheableImages(example: [String]) async throws {
            let (folder, origin) = (TemporaryFolder("unstored"), try await CacheControlOrigin.start())
            for (name, start, bytes) in CacheControlOrigin.images {
                for cacheControl in ["no-store", "no-cache", "max-age=0"] {
                    let run = try await self.start(
                        example + [cluster.gateway.absoluteString, origin.url(name, cacheControl), name], in: folder)
                    #expect(await run.exit() == .code(0), "\(name) \(cacheControl): \(text("errors", in: folder))")
                    let file = folder.read(name)
                    #expect(file.starts(with: start) && file.count >= bytes, "\(name) \(cacheControl): \(file.count)")
                    folder.write([], to: name)
                }
            }
            await folder.remove()
            try await origin.origin.stop()
        }

        @Test(
            .enabled(
                if: access("/usr/bin/chromium", X_OK) == 0, "there is no /usr/bin/chromium; make deps-test installs it")
        )
        func browserPageShowsImagesAndFailures() async throws {
            let folder = TemporaryFolder("browser")
            let pages = try await Nginx.start(serving: Self.root)
            let unstored = try await CacheControlOrigin.start()
            let port = LoopbackPort.reserve()
            let gateway = try await cluster.startGateway(on: port, ["HALCYON_GATEWAY_CORS_ORIGINS": pages.url])
            let check = try await start(
                [
                    try await PythonTools.interpreter(), "\(Self.root)/Tests/Clients/browser.py",
                    "\(pages.url)/Examples/javascript/browser.html", "http://127.0.0.1:\(port)",
                    "\(cluster.origin.url)/chelsea.jpg", "\(cluster.origin.url)/none.jpg",
                    unstored.url("small", "no-store"), unstored.url("large", "no-store"),
                ], in: folder)
            #expect(await check.exit() == .code(0), "\(text("errors", in: folder))")
            #expect(text("output", in: folder) == "ok\n")
            await gateway.stop()
            await pages.stop()
            try await unstored.origin.stop()
            await folder.remove()
        }

        @Test func shellExamplesSubmitByHTTPAndKafka() async throws {
            let folder = TemporaryFolder("shell")
            let (http, kafka) = ("\(Self.root)/Examples/shell/http.sh", "\(Self.root)/Examples/shell/kafka.sh")
            let gateway = cluster.gateway.absoluteString
            let good = try await start([http, gateway, "\(cluster.origin.url)/rocket.jpg", "rocket.jpg"], in: folder)
            #expect(await good.exit() == .code(0), "\(text("errors", in: folder))")
            #expect(text("output", in: folder) == "ready\n" && folder.read("rocket.jpg").starts(with: [0xff, 0xd8]))
            let bad = try await start([http, gateway, "\(cluster.origin.url)/none.jpg", "none.jpg"], in: folder)
            #expect(await bad.exit() == .code(1))
            #expect(text("errors", in: folder).contains("not_found"))
            let refused = try await start([http, gateway, "nothing://x", "none.jpg"], in: folder)
            #expect(await refused.exit() != .code(0))

            let record = try await start([kafka, cluster.kafka, "initials:KC"], in: folder)
            #expect(await record.exit() == .code(0), "\(text("errors", in: folder))")
            let events = text("output", in: folder).split(separator: "\n").map(String.init)
            #expect(events.last?.contains(#""type":"halcyon.image.ready""#) == true, "\(events)")
            #expect(events.count <= 2)
            await folder.remove()
        }

        @Test(arguments: Language.allCases) func clientPassesItsChecks(language: Language) async throws {
            let (folder, origin) = (TemporaryFolder("check"), RawOrigin { _ in [.awaitEnd] })
            let unstored = try await CacheControlOrigin.start()
            let port = LoopbackPort.reserve()
            let locked = try await cluster.startGateway(
                on: port, ["HALCYON_GATEWAY_KEYS_app": "0123456789abcdef0123456789abcdef"])
            let check = try await start(
                language.command(for: "check") + [
                    cluster.gateway.absoluteString, "http://127.0.0.1:\(port)", "\(cluster.origin.url)/chelsea.jpg",
                    origin.url("/a.jpg"),
                ] + CacheControlOrigin.images.map { unstored.url($0.name, "max-age=60") }, in: folder)
            #expect(await check.exit() == .code(0), "\(text("errors", in: folder))")
            #expect(text("output", in: folder) == "ok\n")
            await locked.stop()
            try await origin.stop()
            try await unstored.origin.stop()
            await folder.remove()
        }

        @Test(arguments: Language.allCases) func streamResumesAfterGatewayCrashes(language: Language) async throws {
            let folder = TemporaryFolder("follow")
            let port = LoopbackPort.reserve()
            var gateway = try await cluster.startGateway(on: port)
            let follower = try await start(language.command(for: "follow") + ["http://127.0.0.1:\(port)"], in: folder)
            try await until("the stream has begun") { text("output", in: folder).hasPrefix("begun\n") }
            @Sendable func seen() -> [(cursor: String, job: String)] {
                text("output", in: folder).split(separator: "\n").compactMap { line -> (cursor: String, job: String)? in
                    let words = line.split(separator: " ").map(String.init)
                    return words.count == 2 ? (cursor: words[0], job: words[1]) : nil
                }
            }
            // Other tests use the same cluster at the same time.
            @Sendable func count(of jobs: [String]) -> Int { Set(jobs).intersection(seen().map(\.job)).count }

            var expected: [String] = []
            for _ in 0..<3 {
                expected += try await submit(20)
                try await until("some are seen") { [expected] in count(of: expected) > expected.count - 15 }
                kill(gateway.pid, SIGKILL)
                await gateway.exit()
                expected += try await submit(20)
                gateway = try await cluster.startGateway(on: port)
            }
            try await until("all are seen") { [expected] in count(of: expected) == expected.count }
            // Duplicates would arrive before the event of this job.
            let last = try await submit(1)
            try await until("the last is seen") { count(of: last) == 1 }
            // A job that is delivered again has another event.
            let cursors = seen().map(\.cursor)
            #expect(Set(cursors).count == cursors.count)
            #expect(!text("output", in: folder).contains("\ngap: "))
            follower.send(SIGKILL)
            await follower.exit()
            await gateway.stop()
            await folder.remove()
        }

        private func submit(_ count: Int) async throws -> [String] {
            let jobs = (0..<count).map { _ in ImageJob(.initials("R"), width: 8) }
            return try await cluster.client.submit(jobs).map { try $0.get().id }
        }
    }
}
