import Foundation
import HalcyonSources
import Subprocess
import TestSupport
import Testing

@Suite(.limitedParallelism) struct BadInputTests {
    /// The fields of a job, and the expected failure code.
    struct Case: CustomTestStringConvertible {
        let testDescription: String
        let fields: String
        let code: String
    }

    static func origin() throws -> RawOrigin {
        let photograph = try SampleImages.bytes()
        return RawOrigin { request in
            switch request.path {
            case "/good.jpg": RawOrigin.Step.response(photograph, ["Cache-Control: max-age=60"])
            case "/page":
                RawOrigin.Step.response(Array("<!doctype html><html>no</html>".utf8), ["Content-Type: image/jpeg"])
            case "/cut.jpg": RawOrigin.Step.response(Array(photograph.prefix(photograph.count / 3)))
            case "/empty": RawOrigin.Step.response([])
            case "/junk": RawOrigin.Step.response((0..<5_000).map { _ in UInt8.random(in: 0...255) })
            case "/gone": RawOrigin.answer("410 Gone")
            case "/secret": RawOrigin.answer("403 Forbidden")
            case "/broken": RawOrigin.answer("500 Oops")
            case "/loop": RawOrigin.answer("302 Found", ["Location: /loop"])
            case "/inside": RawOrigin.answer("302 Found", ["Location: http://10.0.0.1/x.jpg"])
            case "/away": RawOrigin.answer("302 Found", ["Location: ftp://example.org/x.jpg"])
            case "/large": [.text("HTTP/1.1 200 OK\r\n\r\n"), .zeros(3 << 20), .close]
            case "/early": [.text("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nshort"), .close]
            default: RawOrigin.answer("404 Not Found")
            }
        }
    }

    /// Quotations in messages are bounded, and records about a job are truncated until Kafka accepts them.
    @Test(arguments: ["background", "format", "contentMode"], [900_000, 999_600])
    func oversizedValueFailsOnlyItsOwnJob(_ field: String, _ count: Int) async throws {
        try await WorkerFixture.with { cluster in
            try await cluster.withWorkers(1) { _ in
                let value = String(repeating: "a", count: count)
                try await cluster.submit(#"{"id":"large","source":"initials:JD","width":8,"\#(field)":"\#(value)"}"#)
                try await cluster.submit(#"{"id":"behind","source":"initials:JD","width":8}"#)
                let end = try await cluster.events.terminal(of: "large")
                #expect(end.code == "invalid_job" && end.message.utf8.count < 700)
                #expect(end.message.contains(field), "\(end.message)")
                #expect(try await cluster.events.terminal(of: "behind").kind == "ready")
                // The dead letter is complete if Kafka accepts it.
                let letter = try #require(try await cluster.deadLetters(atLeast: 1).first)
                #expect(letter.value?.count ?? 0 == (count == 900_000 ? 900_000 + 48 + field.count + 5 : 64 << 10))
            }
        }
    }

    @Test func badJobsFailWithTheirCodesAndOthersSucceed() async throws {
        let origin = try Self.origin()
        let unused = LoopbackPort.reserve()
        let source = { (path: String) in #""source":"\#(origin.url(path))","width":40,"height":40"# }
        let cases = [
            Case(testDescription: "no source", fields: #""width":4"#, code: "invalid_job"),
            Case(testDescription: "wrong type", fields: #""source":5"#, code: "invalid_job"),
            Case(testDescription: "negative", fields: source("/good.jpg") + #","quality":-3"#, code: "invalid_job"),
            Case(
                testDescription: "absurd size",
                fields: #""source":"\#(origin.url("/good.jpg"))","width":1e9,"height":1"#,
                code: "invalid_job"),
            Case(
                testDescription: "unknown mode", fields: source("/good.jpg") + #","contentMode":"x""#,
                code: "invalid_job"),
            Case(testDescription: "no scheme", fields: #""source":"cat.jpg""#, code: "invalid_job"),
            Case(testDescription: "ftp", fields: #""source":"ftp://example.org/cat.jpg""#, code: "unsupported_source"),
            Case(testDescription: "404", fields: source("/none"), code: "not_found"),
            Case(testDescription: "410", fields: source("/gone"), code: "gone"),
            Case(testDescription: "403", fields: source("/secret"), code: "forbidden"),
            Case(testDescription: "500", fields: source("/broken"), code: "http_error"),
            Case(testDescription: "early close", fields: source("/early"), code: "http_error"),
            Case(testDescription: "html", fields: source("/page"), code: "unsupported_format"),
            Case(testDescription: "junk", fields: source("/junk"), code: "unsupported_format"),
            Case(testDescription: "empty", fields: source("/empty"), code: "unsupported_format"),
            Case(testDescription: "truncated", fields: source("/cut.jpg"), code: "corrupt_image"),
            Case(testDescription: "too large", fields: source("/large"), code: "too_large"),
            Case(testDescription: "redirect loop", fields: source("/loop"), code: "too_many_redirects"),
            Case(testDescription: "redirect inside", fields: source("/inside"), code: "blocked_address"),
            Case(testDescription: "redirect to ftp", fields: source("/away"), code: "http_error"),
            Case(testDescription: "private", fields: #""source":"http://192.168.0.1/x""#, code: "blocked_address"),
            Case(
                testDescription: "nothing listens", fields: #""source":"http://127.0.0.1:\#(unused)/x""#,
                code: "connect_error"),
            Case(
                testDescription: "no such host", fields: #""source":"http://no-such-host.invalid/x""#, code: "dns_error"
            ),
            Case(
                testDescription: "past deadline", fields: source("/good.jpg") + #","deadline":"2001-01-01T00:00:00Z""#,
                code: "expired"),
        ]
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.sources.maximumBytes = 2 << 20 }) {
                for (number, bad) in cases.enumerated() {
                    try await cluster.submit("{\"id\":\"bad\(number)\",\(bad.fields)}")
                    try await cluster.submit("{\"id\":\"good\(number)\",\(source("/good.jpg"))}")
                }
                for (number, bad) in cases.enumerated() {
                    let event = try await cluster.events.terminal(of: "bad\(number)")
                    #expect(event.kind == "failed", "\(bad.testDescription)")
                    #expect(event.code == bad.code, "\(bad.testDescription): \(event.message)")
                    #expect(!event.message.isEmpty)
                    #expect(try await cluster.events.terminal(of: "good\(number)").kind == "ready")
                }
                #expect(cluster.events.terminal.count == 2 * cases.count)
            }
        }
        try await origin.stop()
    }

    @Test func originThatDoesNotRespondTimesOut() async throws {
        let origin = RawOrigin { _ in [.awaitEnd] }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.sources.timeout = .milliseconds(500) }) {
                try await cluster.submit(#"{"id":"slow","source":"\#(origin.url("/a"))","width":40}"#)
                let event = try await cluster.events.terminal(of: "slow")
                #expect(event.kind == "failed" && event.code == "timeout", "\(event.message)")
            }
        }
        try await origin.stop()
    }

    @Test func malformedMessagesBecomeUnchangedDeadLetters() async throws {
        let malformed: [[UInt8]] = [
            [0x00, 0xff, 0x13], Array("{\"id\":\"half\",\"sou".utf8), [], Array("[]".utf8), Array("{\"width\":3}".utf8),
        ]
        let origin = try Self.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                for message in malformed { try await cluster.submit(message) }
                try await cluster.submit(#"{"id":"good","source":"\#(origin.url("/good.jpg"))"}"#)
                #expect(try await cluster.events.terminal(of: "good").kind == "ready")
                let letters = try await cluster.deadLetters(atLeast: malformed.count)
                #expect(Set(letters.map { $0.value ?? [] }) == Set(malformed))
                for letter in letters {
                    let headers = Dictionary(
                        uniqueKeysWithValues: letter.headers.map {
                            ($0.name, String(decoding: $0.value ?? [], as: UTF8.self))
                        })
                    #expect(headers["halcyon-code"] == "invalid_job")
                    #expect(headers["halcyon-topic"] == "halcyon.jobs")
                    #expect(headers["halcyon-message"]?.isEmpty == false)
                }
                #expect(cluster.events.terminal.count == 1)
            }
        }
        try await origin.stop()
    }
}
