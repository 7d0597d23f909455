import Curl
import Glibc
import Subprocess
import TestSupport
import Testing

/// Addresses, faulty peers, TLS, cancellation, closing and concurrency.
@Suite(.limitedParallelism) struct ConnectionTests {
    private var blockingSecondAddress: CurlSettings {
        var settings = CurlSettings()
        settings.allowsAddress = { $0.host != "127.0.0.2" }
        return settings
    }

    @Test func doesNotConnectToFilteredAddresses() async throws {
        try await withOrigin(settings: blockingSecondAddress) { request in
            request.path == "/away"
                ? RawOrigin.answer("302 Found", ["Location: http://127.0.0.2:\(request.head.port)/"])
                : RawOrigin.answer()
        } _: { origin, client in
            let message = await expectFailure(.refusedAddress) {
                try await client.execute(.patient(origin.url("/", host: "127.0.0.2")))
            }
            #expect(message.contains("127.0.0.2"))
            #expect(origin.connections == 0)
            let allowed = try await client.execute(.patient(origin.url("/")))
            #expect(allowed.status == 200)
            await expectFailure(.refusedAddress) { try await client.execute(.patient(origin.url("/away"))) }
            #expect(origin.connections == 1)
        }
    }

    @Test(arguments: [
        "http://0x7f.2:1/", "http://2130706434:1/", "http://127.2:1/", "http://[::ffff:127.0.0.2]:1/",
        "http://[::1]:1/",
    ])
    func filtersTheActualAddress(url: String) async {
        var settings = CurlSettings()
        settings.allowsAddress = { address in
            if address.bytes.count == 4 { return address.bytes != [127, 0, 0, 2] }
            return ![[127, 0, 0, 2], [0, 0, 0, 1]].contains(Array(address.bytes.suffix(4)))
        }
        let client = CurlClient(settings)
        await expectFailure(.refusedAddress) { try await client.execute(.patient(url)) }
        await client.close()
    }

    @Test func distinguishesRefusedConnectionsFromUnknownNames() async {
        let client = CurlClient()
        await expectFailure(.cannotConnect) {
            try await client.execute(.patient("http://127.0.0.1:\(LoopbackPort.reserve())/"))
        }
        await expectFailure(.nameNotResolved) {
            try await client.execute(.patient("http://no-such-host.invalid/"))
        }
        await client.close()
    }

    @Test func errorContainsPartialResponse() async throws {
        try await withOrigin { _ in
            [
                .text("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 100\r\n\r\nshort"), .pause(.milliseconds(50)),
                .close,
            ]
        } _: { origin, client in
            let error = await #expect(throws: CurlError.self) {
                try await client.execute(.patient(origin.url("/")))
            }
            let partial = try #require(error?.partial)
            #expect(partial.status == 200 && partial.headers["ETag"] == "\"a\"" && text(partial.body) == "short")
        }
    }

    @Test(arguments: [
        [RawOrigin.Step.text("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"), .close],
        [.text("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"), .pause(.milliseconds(50)), .reset],
        [.text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nshort"), .close],
        [.close],
    ])
    func detectsTruncatedResponses(script: [RawOrigin.Step]) async throws {
        try await withOrigin { _ in
            script
        } _: { origin, client in
            let message = await expectFailure(.interrupted) {
                try await client.execute(.patient(origin.url("/")))
            }
            #expect(!message.isEmpty)
        }
    }

    @Test(arguments: [
        [RawOrigin.Step.text("SSH-2.0-OpenSSH_9.2\r\n"), .close],
        [.text("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello")],
    ])
    func detectsMalformedResponses(script: [RawOrigin.Step]) async throws {
        try await withOrigin { _ in
            script
        } _: { origin, client in
            let error = await #expect(throws: CurlError.self) {
                try await client.execute(.patient(origin.url("/")))
            }
            #expect(error?.code == .protocolError && error?.isRetriable == true)
        }
    }

    @Test func trustsOnlyKnownAuthorities() async throws {
        let certificate = try await SelfSignedCertificate.make()
        let server = try await TLSServer.start(certificate)
        let url = "https://127.0.0.1:\(server.port)/"
        let untrusting = CurlClient()
        await expectFailure(.tls) { try await untrusting.execute(.patient(url)) }
        await untrusting.close()

        var settings = CurlSettings()
        settings.authorities = certificate.certificate
        let trusting = CurlClient(settings)
        let response = try await trusting.execute(.patient(url))
        #expect(response.status == 200 && response.timings.tls > .zero)
        // The same certificate, but not for this name.
        await expectFailure(.tls) { try await trusting.execute(.patient("https://localhost:\(server.port)/")) }
        await trusting.close()
        await server.stop()
        await certificate.remove()
    }

    @Test func cancellationClosesTheConnection() async throws {
        try await withOrigin { _ in
            [.text("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"), .zeros(1000), .awaitEnd]
        } _: { origin, client in
            let tasks = (0..<20).map { _ in
                Task {
                    await expectFailure(.cancelled) { try await client.execute(.patient(origin.url("/"))) }
                }
            }
            try await until("all requests are in flight") { origin.requests.count == 20 }
            for task in tasks { task.cancel() }
            for task in tasks { _ = await task.value }
            try await until("the origin sees all connections closed") { origin.cuts == 20 }
        }
    }

    @Test func handlesManyConcurrentCancellations() async throws {
        try await withOrigin { _ in
            RawOrigin.answer("200 OK", [], "x")
        } _: { origin, client in
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<500 {
                    group.addTask {
                        let task = Task { try await client.execute(.patient(origin.url("/\(number)"))) }
                        if number % 2 == 0 { task.cancel() }
                        switch await task.result {
                        case .success(let response): #expect(text(response.body) == "x")
                        case .failure(let error): #expect((error as? CurlError)?.code == .cancelled)
                        }
                    }
                }
            }
        }
    }

    @Test func closingFailsRequestsInFlight() async throws {
        try await withOrigin { _ in
            [.awaitEnd]
        } _: { origin, client in
            let tasks = (0..<5).map { _ in
                Task { await expectFailure(.closed) { try await client.execute(.patient(origin.url("/"))) } }
            }
            try await until("all requests are in flight") { origin.requests.count == 5 }
            await client.close()
            for task in tasks { _ = await task.value }
            await expectFailure(.closed) { try await client.execute(.patient(origin.url("/"))) }
            try await until("the origin sees all connections closed") { origin.cuts == 5 }
        }
    }

    @Test func runsFiveHundredConcurrentTransfers() async throws {
        let size = 20_000
        try await withOrigin { request in
            // All requests arrive before any is answered.
            [.pause(.milliseconds(300)), .text("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n"), .zeros(size)]
        } _: { origin, client in
            try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<500 {
                    group.addTask { try await client.execute(.patient(origin.url("/\(number)"))).body.count }
                }
                for try await count in group { #expect(count == size) }
            }
            #expect(Set(origin.requests.map(\.path)).count == 500)
        }
    }

    @Test func limitsConnectionsPerHost() async throws {
        var settings = CurlSettings()
        settings.maxConnectionsPerHost = 2
        try await withOrigin(settings: settings) { _ in
            [.pause(.milliseconds(5))] + RawOrigin.answer()
        } _: { origin, client in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<40 { group.addTask { _ = try await client.execute(.patient(origin.url("/"))) } }
                try await group.waitForAll()
            }
            #expect(origin.connections <= 2)
        }
    }
}

extension String {
    /// The port of the Host header.
    fileprivate var port: Substring {
        split(separator: "\r\n").first { $0.hasPrefix("Host:") }?.split(separator: ":").last ?? ""
    }
}
