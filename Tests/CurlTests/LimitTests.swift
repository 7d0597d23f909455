import Concurrency
import Curl
import TestSupport
import Testing

/// Limits on bytes, time and redirects.
@Suite(.limitedParallelism) struct LimitTests {
    private static let head = "HTTP/1.1 200 OK\r\n"

    @Test(arguments: ["Content-Length: 1001", "Content-Length: 99999999999", "X: y"])
    func abortsOversizedBodies(header: String) async throws {
        try await withOrigin { _ in
            [.text("\(Self.head)\(header)\r\n\r\n"), .zeros(1 << 40)]
        } _: { origin, client in
            var request = HTTPRequest.patient(origin.url("/"))
            request.maxBytes = 1000
            let error = await #expect(throws: CurlError.self) { try await client.execute(request) }
            #expect(error?.code == .tooLarge && error?.status == 200)
            try await until("the origin sees the connection closed") { origin.cuts == 1 }
        }
    }

    /// 3 MB, admitted in steps that take longer than the timeouts of the transfer. Without these steps, a busy machine
    /// may need longer than the timeouts, which therefore grow with each attempt.
    @Test(arguments: ["Content-Length: 3000000", "Connection: close"])
    func admissionDoesNotCountTowardTimeouts(header: String) async throws {
        try await withOrigin { _ in
            [.text("\(Self.head)\(header)\r\n\r\n"), .zeros(3_000_000), .close]
        } _: { origin, client in
            for seconds in [1, 8, 64] {
                var request = HTTPRequest.patient(origin.url("/"))
                request.timeout = .seconds(seconds)
                request.stall = HTTPRequest.Stall(bytesPerSecond: 64, for: .seconds(seconds))
                let asked = Lock<[Int]>([])
                let admission = HTTPAdmission(bytes: 100) { bytes in
                    asked.withLock { $0.append(bytes) }
                    try await Task.sleep(for: .milliseconds(1200 * seconds))
                    return (bytes + 1_499_999) / 1_500_000 * 1_500_000
                }
                let response: HTTPResponse
                do throws(CurlError) {
                    response = try await client.execute(request, admission: admission)
                } catch {
                    guard case .timeout = error.code, seconds < 64 else { throw error }
                    continue
                }
                #expect(response.body.count == 3_000_000)
                let steps = asked.withLock { $0 }
                if header.hasPrefix("Content-Length") {
                    #expect(steps == [3_000_000])
                } else {
                    #expect(steps.first.map { $0 <= 1 << 20 } == true && steps.count >= 2)
                }
                return
            }
        }
    }

    @Test func cancelsPausedTransfers() async throws {
        try await withOrigin { _ in
            [.text("\(Self.head)Content-Length: 1000000\r\n\r\n"), .zeros(1_000_000), .awaitEnd]
        } _: { origin, client in
            let isWaiting = Lock(false)
            let hasEnded = Lock(false)
            let admission = HTTPAdmission(bytes: 0) { bytes in
                isWaiting.withLock { $0 = true }
                defer { hasEnded.withLock { $0 = true } }
                try await Task.sleep(for: .seconds(600))
                return bytes
            }
            let request = HTTPRequest.patient(origin.url("/"))
            let transfer = Task { try await client.execute(request, admission: admission) }
            try await until("the transfer waits for admission") { isWaiting.withLock { $0 } }
            transfer.cancel()
            await expectFailure(.cancelled) { try await transfer.value }
            try await until("the wait has ended") { hasEnded.withLock { $0 } }
        }
    }

    @Test func acceptsBodyOfExactlyTheLimit() async throws {
        try await withOrigin { _ in
            [.text("\(Self.head)Content-Length: 1000\r\n\r\n"), .zeros(1000)]
        } _: { origin, client in
            var request = HTTPRequest.patient(origin.url("/"))
            request.maxBytes = 1000
            let response = try await client.execute(request)
            #expect(response.body.count == 1000)
        }
    }

    @Test func abortsOversizedChunkedBodies() async throws {
        try await withOrigin { _ in
            [.text("\(Self.head)Transfer-Encoding: chunked\r\n\r\n")]
                + (0..<100).map { _ in .text("64\r\n\(String(repeating: "x", count: 100))\r\n") }
        } _: { origin, client in
            var request = HTTPRequest.patient(origin.url("/"))
            request.maxBytes = 1000
            await expectFailure(.tooLarge) { try await client.execute(request) }
        }
    }

    /// 10 MB of zeros in 10 KB of gzip.
    @Test func countsDecompressedBytes() async throws {
        let bomb = try await gzip(zeros: 10 << 20)
        #expect(bomb.count < 1 << 16)
        try await withOrigin { _ in
            [.text("\(Self.head)Content-Encoding: gzip\r\nContent-Length: \(bomb.count)\r\n\r\n"), .bytes(bomb)]
        } _: { origin, client in
            var request = HTTPRequest.patient(origin.url("/"))
            request.maxBytes = 1 << 20
            await expectFailure(.tooLarge) { try await client.execute(request) }
            request.maxBytes = 10 << 20
            let response = try await client.execute(request)
            #expect(response.body.count == 10 << 20)
            request.acceptsCompression = false
            let raw = try await client.execute(request)
            #expect(raw.body == bomb)
        }
    }

    /// The body of a redirect is discarded, but receiving it is not free.
    @Test(arguments: ["Content-Length: 1099511627776", "X: y"])
    func abortsEndlessBodiesOfRedirects(header: String) async throws {
        try await withOrigin { request in
            if request.path == "/b" { return RawOrigin.answer() }
            return [.text("HTTP/1.1 302 Found\r\nLocation: /b\r\n\(header)\r\n\r\n"), .zeros(1 << 40)]
        } _: { origin, client in
            var request = HTTPRequest.patient(origin.url("/"))
            request.maxBytes = 1 << 20
            // libcurl follows without reading a body of unknown length. It reads a body of known length.
            _ = try? await client.execute(request)
            try await until("the origin sees the connection closed") { origin.cuts == 1 }
        }
    }

    @Test func rejectsEndlessHeaders() async throws {
        try await withOrigin { _ in
            [.text(Self.head)] + (0..<5_000).map { .text("X-\($0): \(String(repeating: "x", count: 100))\r\n") }
        } _: { origin, client in
            await expectFailure(.protocolError) { try await client.execute(.patient(origin.url("/"))) }
        }
    }

    @Test func distinguishesTransferAndStallTimeouts() async throws {
        try await withOrigin { request in
            switch request.path {
            case "/silent": [.awaitEnd]
            default: [.text("\(Self.head)Content-Length: 1000000\r\n\r\n"), .zeros(1000), .awaitEnd]
            }
        } _: { origin, client in
            var request = HTTPRequest.patient(origin.url("/silent"))
            request.timeout = .milliseconds(300)
            await expectFailure(.timeout(.transfer)) { try await client.execute(request) }
            request = .patient(origin.url("/stalled"))
            request.stall = HTTPRequest.Stall(bytesPerSecond: 100, for: .seconds(1))
            await expectFailure(.timeout(.stall)) { try await client.execute(request) }
            // On a busy machine, the first request may end before it is sent.
            try await until("the origin sees the connections closed") { origin.cuts == origin.requests.count }
        }
    }

    /// TEST-NET-1 (RFC 5737) has no hosts. If a router reports this at once, the error is not a timeout.
    @Test func connectionFailureIsRetriable() async throws {
        let client = CurlClient()
        var request = HTTPRequest.patient("http://192.0.2.1/")
        request.connectTimeout = .milliseconds(200)
        do {
            _ = try await client.execute(request)
            Issue.record("connected to an address without a host")
        } catch {
            #expect([.timeout(.connect), .cannotConnect].contains(error.code), "\(error)")
            #expect(error.isRetriable)
        }
        await client.close()
    }

    @Test func followsRelativeRedirectsAndStopsLoops() async throws {
        try await withOrigin { request in
            switch request.path {
            case "/a/b": RawOrigin.answer("301 Moved", ["Location: ../c?d"], "moved")
            case "/c?d": RawOrigin.answer("200 OK", [], "here")
            default: RawOrigin.answer("302 Found", ["Location: \(request.path)x"])
            }
        } _: { origin, client in
            let response = try await client.execute(.patient(origin.url("/a/b")))
            #expect(text(response.body) == "here" && response.effectiveURL == origin.url("/c?d"))
            var request = HTTPRequest.patient(origin.url("/loop"))
            request.maxRedirects = 7
            await expectFailure(.tooManyRedirects) { try await client.execute(request) }
            #expect(origin.requests.filter { $0.path.hasPrefix("/loop") }.count == 8)
            request.maxRedirects = 0
            let redirect = try await client.execute(request)
            #expect(redirect.status == 302 && redirect.headers["location"] == "/loopx")
            #expect(redirect.redirectURL == origin.url("/loopx"))
        }
    }

    @Test(arguments: ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "dict://127.0.0.1/"])
    func rejectsRedirectsToOtherSchemes(location: String) async throws {
        try await withOrigin { _ in
            RawOrigin.answer("302 Found", ["Location: \(location)"])
        } _: { origin, client in
            await expectFailure(.unsupportedScheme) { try await client.execute(.patient(origin.url("/"))) }
        }
    }

    @Test func doesNotSendCredentialsToOtherHosts() async throws {
        let (first, second) = (NumberRecorder(), NumberRecorder())
        let other = RawOrigin { request in
            second.record(request.head.contains("Authorization") || request.head.contains("Cookie") ? 1 : 0)
            return RawOrigin.answer()
        }
        try await withOrigin { request in
            first.record(request.head.contains("Authorization") ? 1 : 0)
            return RawOrigin.answer("302 Found", ["Location: http://127.0.0.2:\(other.port)/", "Set-Cookie: a=b"])
        } _: { origin, client in
            let request = HTTPRequest(.get, origin.url("/"), headers: ["Authorization": "Bearer x", "Cookie": "c=d"])
            _ = try await client.execute(request)
            #expect(first.all == [1] && second.all == [0])
        }
        try await other.stop()
    }
}

/// A recorder of numbers for use on any thread.
final class NumberRecorder: Sendable {
    private let numbers = Lock<[Int]>([])
    var all: [Int] { numbers.withLock { $0 } }
    func record(_ number: Int) { numbers.withLock { $0.append(number) } }
}
