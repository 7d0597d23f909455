import Concurrency
import Curl
import Glibc
import HalcyonModel
import Subprocess
import TestSupport
import Testing

@testable import HalcyonSources

/// Faulty origins.
@Suite(.limitedParallelism) struct FaultTests {
    private static func with(
        _ change: (inout SourceOptions) -> Void = { _ in }, _ body: (SourceLoader) async throws -> Void
    ) async throws {
        var options = SourceOptions.patient
        options.policy = AddressPolicy(allow: ["127.0.0.1"])
        options.maximumBytes = 1 << 20
        change(&options)
        let pool = ThreadPool(name: "unused", threads: 1)
        let loader = SourceLoader(options, drawingOn: pool)
        let result: Result<Void, any Error>
        do { result = .success(try await body(loader)) } catch { result = .failure(error) }
        await loader.close()
        await blocking { pool.shutdown() }
        try result.get()
    }

    private static func failure(_ loader: SourceLoader, _ url: String) async throws -> JobError {
        try #require(await #expect(throws: JobError.self, "\(url)") { try await loader.load(Source(url)) })
    }

    /// Runs `body` with an nginx that has an image of 600,000 bytes, a decompression bomb and faulty responses.
    private static func withNginx(_ body: (Nginx, TemporaryFolder, [UInt8]) async throws -> Void) async throws {
        let folder = TemporaryFolder("faults")
        let picture = (0..<600_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13) }
        folder.write(picture, to: "picture.jpg")
        // 64 MiB of zeros in 64 KiB.
        folder.write([UInt8](repeating: 0, count: 64 << 20), to: "zeros")
        let packed = await ChildProcess.succeeds("gzip", ["-9", "-k", "\(folder.path)/zeros"])
        #expect(packed)
        let nginx = try await Nginx.start(
            serving: folder.path,
            """
            location = /drip.jpg { limit_rate 40; alias \(folder.path)/picture.jpg; }
            location = /slow.jpg { limit_rate 1k; sendfile on; alias \(folder.path)/picture.jpg; }
            location = /stall.jpg { echo_sleep 60; echo_exec /picture.jpg; }
            location = /nothing.jpg { return 444; }
            location = /private.jpg { return 302 http://10.0.0.1/; }
            location = /metadata.jpg { return 302 http://169.254.169.254/latest/; }
            location = /local.jpg { return 302 http://[::1]:\(LoopbackPort.reserve())/; }
            location = /loop.jpg { return 302 /loop.jpg; }
            location = /bomb.jpg { alias \(folder.path)/zeros.gz; add_header Content-Encoding gzip; }
            location = /unmodified.jpg { return 304; }
            location = /teapot.jpg { return 418; }
            location = /busy.jpg { return 503; }
            location = /status { stub_status; }
            """)
        let result: Result<Void, any Error>
        do { result = .success(try await body(nginx, folder, picture)) } catch { result = .failure(error) }
        await nginx.stop()
        await folder.remove()
        try result.get()
    }

    @Test func mapsFaultsToErrorCodes() async throws {
        try await Self.withNginx { nginx, _, _ async throws in
            try await Self.with {
                $0.stallTimeout = .seconds(1)
            } _: { loader async throws in
                for name in ["drip", "stall"] {
                    let failure = try await Self.failure(loader, "\(nginx.url)/\(name).jpg")
                    #expect(failure.code == .timeout && failure.isRetryable, "\(name): \(failure)")
                }
            }
            try await Self.with { loader async throws in
                let expected: [(String, JobErrorCode, Bool)] = [
                    ("nothing", .httpError, true),
                    ("private", .blockedAddress, false), ("metadata", .blockedAddress, false),
                    ("local", .blockedAddress, false), ("loop", .tooManyRedirects, false), ("bomb", .tooLarge, false),
                    ("unmodified", .httpError, true), ("teapot", .httpError, false), ("busy", .httpError, true),
                ]
                for (name, code, isRetryable) in expected {
                    let failure = try await Self.failure(loader, "\(nginx.url)/\(name).jpg")
                    #expect(failure.code == code && failure.isRetryable == isRetryable, "\(name): \(failure)")
                }
                // Other loads are not affected.
                #expect(try await loader.load(Source("\(nginx.url)/picture.jpg")).body.count == 600_000)
            }
        }
    }

    /// A malformed response counts like a status of 5xx.
    @Test(arguments: [
        [RawOrigin.Step.text("SSH-2.0-OpenSSH_9.2\r\n"), .close],
        [.text("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello")],
    ])
    func malformedResponsesAreRetryable(script: [RawOrigin.Step]) async throws {
        let origin = RawOrigin { _ in script }
        try await Self.with { loader async throws in
            let failure = try await Self.failure(loader, origin.url("/a.jpg"))
            #expect(failure.code == .httpError && failure.isRetryable)
            #expect(OriginOutcome(failure) == .failed)
            #expect(FailureLifetimes().seconds(for: failure) == FailureLifetimes().failing)
        }
        try await origin.stop()
    }

    @Test func unchangedSourceIsNotDownloadedAgain() async throws {
        try await Self.withNginx { nginx, folder, picture async throws in
            try await Self.with { loader async throws in
                let source = try Source("\(nginx.url)/picture.jpg")
                let first = try await loader.load(source)
                #expect(first.body == picture && !first.validators.isEmpty)
                guard case .notModified = try await loader.load(source, ifNoneMatch: first.validators) else {
                    Issue.record("the unchanged source was loaded again")
                    return
                }
                folder.write([1, 2, 3], to: "picture.jpg")
                guard case .loaded(let second) = try await loader.load(source, ifNoneMatch: first.validators) else {
                    Issue.record("the change was not detected")
                    return
                }
                #expect(second.body == [1, 2, 3] && second.validators != first.validators)
            }
        }
    }

    /// nginx declares a length and then sends less, because the file is truncated while it is sent.
    @Test func failsWhenBodyIsShorterThanContentLength() async throws {
        try await Self.withNginx { nginx, folder, picture async throws in
            try await Self.with {
                $0.resumptions = 0
            } _: { loader async throws in
                let load = Task { try await loader.load(Source("\(nginx.url)/slow.jpg")) }
                let client = CurlClient()
                try await until("nginx sends the file") {
                    // One of the two connections is that of this request.
                    let status = try await client.execute(HTTPRequest(.get, "\(nginx.url)/status"))
                    return String(decoding: status.body, as: UTF8.self).contains("Writing: 2")
                }
                await client.close()
                // nginx would send the file for ten minutes, and continues once a second.
                #expect(truncate("\(folder.path)/picture.jpg", 0) == 0)
                let failure = try #require(await #expect(throws: JobError.self) { try await load.value })
                #expect(failure.code == .httpError && failure.isRetryable)
            }
        }
    }

    /// Returns an origin that closes each connection after `count` bytes, and that supports ranges.
    private static func interruptingOrigin(
        _ picture: [UInt8], after count: Int, tag: @escaping @Sendable (Int) -> String = { _ in "\"a\"" },
        requests: Lock<[String]>
    ) -> RawOrigin {
        RawOrigin { request in
            let number = requests.withLock { requests in
                requests.append(request.head)
                return requests.count
            }
            let head = request.head.lowercased()
            let start =
                head.split(separator: "range: bytes=").dropFirst().first?.prefix { $0.isNumber }
                .description
            guard let start = start.flatMap({ Int($0) }), head.contains("if-range: \(tag(number))") else {
                return [
                    .text(
                        "HTTP/1.1 200 OK\r\nETag: \(tag(number))\r\nAccept-Ranges: bytes\r\n"
                            + "Content-Length: \(picture.count)\r\n\r\n"),
                    .bytes(Array(picture.prefix(count))), .pause(.milliseconds(50)), .close,
                ]
            }
            let rest = picture[start...]
            return [
                .text(
                    "HTTP/1.1 206 Partial Content\r\nETag: \(tag(number))\r\n"
                        + "Content-Range: bytes \(start)-\(picture.count - 1)/\(picture.count)\r\n"
                        + "Content-Length: \(rest.count)\r\n\r\n"),
                .bytes(Array(rest.prefix(count))), .pause(.milliseconds(50)), .close,
            ]
        }
    }

    @Test func resumesInterruptedTransfers() async throws {
        let picture = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        let requests = Lock<[String]>([])
        let origin = Self.interruptingOrigin(picture, after: 30_000, requests: requests)
        try await Self.with { loader async throws in
            let loaded = try await loader.load(Source(origin.url("/a.jpg")))
            #expect(loaded.body == picture && loaded.status == 200 && loaded.validators.etag == "\"a\"")
        }
        let heads = requests.withLock { $0 }
        #expect(heads.count == 4)
        #expect(
            heads[1].contains("bytes=30000-") && heads[2].contains("bytes=60000-") && heads[3].contains("bytes=90000-"))
        try await origin.stop()
    }

    @Test func limitsResumptions() async throws {
        let requests = Lock<[String]>([])
        let origin = Self.interruptingOrigin([UInt8](repeating: 1, count: 100_000), after: 10_000, requests: requests)
        try await Self.with {
            $0.resumptions = 2
        } _: { loader async throws in
            #expect(try await Self.failure(loader, origin.url("/a.jpg")).code == .httpError)
        }
        #expect(requests.withLock { $0.count } == 3)
        try await origin.stop()
    }

    @Test func restartsWhenSourceChangesDuringTransfer() async throws {
        let requests = Lock<[String]>([])
        let (old, new) = ([UInt8](repeating: 1, count: 1000), [UInt8](repeating: 2, count: 1000))
        let origin = RawOrigin { request in
            let number = requests.withLock { requests in
                requests.append(request.head)
                return requests.count
            }
            return number == 1
                ? [
                    .text("HTTP/1.1 200 OK\r\nETag: \"old\"\r\nContent-Length: 1000\r\n\r\n"),
                    .bytes(Array(old.prefix(400))), .pause(.milliseconds(50)), .close,
                ]
                : [.text("HTTP/1.1 200 OK\r\nETag: \"new\"\r\nContent-Length: 1000\r\n\r\n"), .bytes(new)]
        }
        try await Self.with {
            // The new version is larger than the rest of the old one may be.
            $0.maximumBytes = 1000
        } _: { loader async throws in
            let loaded = try await loader.load(Source(origin.url("/a.jpg")))
            #expect(loaded.body == new && loaded.validators.etag == "\"new\"")
        }
        #expect(requests.withLock { $0[1].contains("\"old\"") })
        try await origin.stop()
    }
}

extension ChildProcess {
    /// Returns true if a program exits with code 0.
    fileprivate static func succeeds(_ program: String, _ arguments: [String]) async -> Bool {
        (try? await ChildProcess.start(program, arguments).exit()) == .code(0)
    }
}
