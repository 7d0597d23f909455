import Concurrency
import Foundation
import FoundationNetworking
import HalcyonKit
import TestSupport
import Testing

/// The client with a custom transport.
@Suite struct TransportTests {
    private func client(_ transport: FakeTransport, retryTimeout: Duration = .zero) -> HalcyonClient {
        var configuration = HalcyonClient.Configuration()
        configuration.retryTimeout = retryTimeout
        (configuration.readTimeout, configuration.longPollInterval) = (.seconds(7), .seconds(5))
        return HalcyonClient(
            URL(string: "https://gateway.invalid/a/")!, key: "secret", configuration: configuration,
            transport: transport)
    }

    @Test func passesRequestsWithTheirKindAndTimeout() async throws {
        let transport = FakeTransport { _ in
            HalcyonClient.Response(status: 200, body: Data(#"{"id": "a/b", "state": "paused"}"#.utf8))
        }
        let state = try await client(transport).jobState(id: "a/b", timeout: .seconds(60))
        #expect(state.status == JobState.Status(rawValue: "paused") && !state.status.isTerminal && state.event == nil)
        let (request, kind) = try #require(transport.requests.first)
        #expect(request.url?.absoluteString == "https://gateway.invalid/a/v1/jobs/a%2Fb?wait=5.000")
        #expect(request.value(forHTTPHeaderField: "Authorization") == "Bearer secret")
        #expect(kind == .longPoll && request.timeoutInterval == 12)
    }

    @Test func retriesTransportErrors() async throws {
        let attempts = Lock(0)
        let transport = FakeTransport { _ in
            let attempt = attempts.withLock { attempt in
                attempt += 1
                return attempt
            }
            if attempt == 1 { throw URLError(.networkConnectionLost) }
            return HalcyonClient.Response(status: 200, body: Data("x".utf8))
        }
        #expect(try await client(transport, retryTimeout: .seconds(60)).imageData(forKey: "k") == Data("x".utf8))
        #expect(transport.requests.count == 2)
        let lost = FakeTransport { _ in throw URLError(.networkConnectionLost) }
        guard case .connectionFailed = try await errorOf({ try await client(lost).imageData(forKey: "k") }) else {
            Issue.record("unexpected error")
            return
        }
    }

    /// Returns a gateway that has no images, and a job whose image was uploaded to an address. Other servers have it.
    private static func uploading(to address: String) -> FakeTransport {
        FakeTransport { request in
            guard request.url?.host == "gateway.invalid" else { return .image("x") }
            if request.httpMethod == "POST" {
                return HalcyonClient.Response(
                    status: 202, body: Data(#"{"id": "x", "lane": "normal", "images": []}"#.utf8))
            }
            if request.url!.pathComponents.contains("images") { return .problem(404, "not-found") }
            let event = #"""
                {"id": "1", "type": "halcyon.image.ready", "time": "2026-11-21T10:31:07.250Z", "data": {
                "job": {"id": "x"}, "origin": "network", "timings": {}, "variants": [
                {"key": "k", "width": 1, "height": 1, "format": "png", "bytes": 1, "sha256": "", "put": "\#(address)"}]}}
                """#
            return HalcyonClient.Response(
                status: 200, body: Data(#"{"id": "x", "state": "ready", "event": \#(event)}"#.utf8))
        }
    }

    /// Returns the body of the first request.
    private static func submitted(to transport: FakeTransport) -> String {
        String(decoding: transport.requests.first?.request.httpBody ?? Data(), as: UTF8.self)
    }

    @Test func imageIsUploadedAndReadFromThere() async throws {
        let transport = Self.uploading(to: "https://bucket.invalid/a.png")
        var job = ImageJob("initials:A", width: 1)
        job.delivery = .put(template: "https://bucket.invalid/a.{format}")
        let image = try await client(transport).image(for: job)
        #expect(image.data == Data("x".utf8))
        let body = Self.submitted(to: transport)
        #expect(body.contains(#""delivery":{"put":"#), "\(body)")
        let request = try #require(transport.requests.last?.request)
        #expect(request.url?.absoluteString == "https://bucket.invalid/a.png")
        #expect(request.value(forHTTPHeaderField: "Authorization") == nil)
    }

    @Test func imageThatWasUploadedToAnUnknownURLIsNotDelivered() async throws {
        let transport = Self.uploading(to: "https://bucket.invalid")
        var job = ImageJob("initials:A", width: 1)
        job.delivery = .put(URL(string: "https://bucket.invalid/a.png?signature=5f3a")!)
        let sent = job
        let error = try await errorOf { try await client(transport).image(for: sent) }
        #expect(error == .notDelivered(address: "https://bucket.invalid"))
    }

    @Test func inlineDeliveryIsByReference() async throws {
        let transport = FakeTransport.ready(images: 1) { key in Data(key.utf8) }
        var job = ImageJob("initials:A", width: 1)
        job.delivery = .inline
        let image = try await client(transport).image(for: job)
        #expect(image.data == Data("0".utf8))
        let body = Self.submitted(to: transport)
        #expect(body.contains(#""delivery":"reference""#), "\(body)")
    }

    @Test func keepsUnknownProblemTypesAndCodes() async throws {
        let transport = FakeTransport { _ in
            HalcyonClient.Response(
                status: 429, headers: ["retry-after": "3"],
                body: Data(#"{"type": "/problems/too-cold", "code": "bad_moon"}"#.utf8))
        }
        let problem = try await problemOf { try await client(transport).imageData(forKey: "k") }
        #expect(problem.kind == .init(rawValue: "too-cold") && problem.code == FailureCode(rawValue: "bad_moon"))
        #expect(problem.isTransient && problem.retryAfter == .seconds(3))
    }

    @Test func unknownValuesDoNotEndAStream() async throws {
        let messages = [
            #""type": "halcyon.image.archived", "data": {}"#,
            #""type": "halcyon.image.failed", "data": {"job": {"id": "x"}, "code": "bad_moon", "message": "m", "#
                + #""retryable": false, "attempts": 1}"#,
            #""type": "halcyon.image.ready", "data": {"job": {"id": "x"}, "origin": "edge", "timings": {}, "#
                + #""variants": [{"key": "k", "width": 1, "height": 1, "format": "jxr", "bytes": 1, "sha256": ""}]}"#,
        ]
        let text = messages.enumerated().map { index, members in
            "id: \(index)\ndata: {\"id\": \"\(index)\", \"time\": \"2026-11-21T10:31:07.250Z\", \(members)}\n\n"
        }
        let transport = FakeTransport { _ in
            let body = AsyncThrowingStream<Data, any Error> { $0.yield(Data(text.joined().utf8)) }
            return HalcyonClient.Response(
                status: 200, headers: ["content-type": "text/event-stream; charset=utf-8"], body: body)
        }
        var kinds: [ImageEvent.Kind] = []
        for try await element in try await client(transport).events(after: "start") {
            kinds.append(try #require(element.event).kind)
            if kinds.count == messages.count { break }
        }
        #expect(kinds[0] == .other("halcyon.image.archived"))
        guard case .failed(let failed) = kinds[1], case .ready(let ready) = kinds[2] else {
            Issue.record("\(kinds)")
            return
        }
        #expect(failed.code.rawValue == "bad_moon" && ready.cacheStatus.rawValue == "edge")
        #expect(transport.requests.count == 1 && transport.requests[0].kind == .eventStream)
    }

    @Test(.timeLimit(.minutes(10))) func loadsTheImagesOfAJobConcurrently() async throws {
        // No image arrives before all four have been requested.
        let gate = AsyncEvent()
        let requested = Lock<Set<String>>([])
        let transport = FakeTransport.ready(images: 4) { key in
            if requested.withLock({
                $0.insert(key); return $0.count == 4
            }) {
                gate.signal()
            }
            while !gate.isSignaled { try await Task.sleep(for: .milliseconds(1)) }
            return Data(key.utf8)
        }
        let images = try await client(transport).images(for: ImageJob("initials:A", width: 1))
        #expect(images.map(\.data) == (0..<4).map { Data("\($0)".utf8) }, "in the order of the variants")
    }

    @Test(.timeLimit(.minutes(10))) func loaderLoadsImagesConcurrently() async throws {
        let (gate, requested, completed) = (AsyncEvent(), Lock(0), Lock(0))
        let transport = FakeTransport { _ in
            if requested.withLock({
                $0 += 1; return $0 == 12
            }) {
                gate.signal()
            }
            while !gate.isSignaled { try await Task.sleep(for: .milliseconds(1)) }
            return HalcyonClient.Response(status: 200, body: Data("x".utf8))
        }
        let loader = ImageLoader(client(transport), completionQueue: DispatchQueue(label: "completions"))
        for width in 1...12 {
            loader.load(ImageRequest("initials:A", width: Double(width))) { result in
                if (try? result.get().data) == Data("x".utf8) { completed.withLock { $0 += 1 } }
            }
        }
        try await until("all images are loaded") { completed.withLock { $0 } == 12 }
    }

    @Test func usesTheGivenURLSessionConfiguration() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("200 OK", [], "x") }
        let session = HalcyonClient.URLSessionTransport.defaultConfiguration
        session.httpAdditionalHeaders = ["X-App": "cats"]
        let client = HalcyonClient(URL(string: origin.url("/"))!, urlSession: session)
        #expect(try await client.imageData(forKey: "k") == Data("x".utf8))
        #expect(origin.requests.first?.head.contains("X-App: cats\r\n") == true)
        try await origin.stop()
    }
}
