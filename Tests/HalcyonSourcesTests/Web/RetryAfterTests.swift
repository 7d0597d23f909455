import Concurrency
import Glibc
import HalcyonModel
import TestSupport
import Testing

@testable import HalcyonSources

/// The Retry-After header of origins.
@Suite(.limitedParallelism) struct RetryAfterTests {
    private func failure(_ status: String, _ headers: [String]) async throws -> JobError {
        let origin = RawOrigin { _ in RawOrigin.answer(status, headers) }
        var options = SourceOptions.patient
        options.policy = AddressPolicy(allow: ["127.0.0.1"])
        let pool = ThreadPool(name: "unused", threads: 1)
        let loader = SourceLoader(options, drawingOn: pool)
        let failure = await #expect(throws: JobError.self) {
            _ = try await loader.load(Source(origin.url("/a.jpg")))
        }
        await loader.close()
        await blocking { pool.shutdown() }
        try await origin.stop()
        return try #require(failure)
    }

    @Test(
        arguments: [
            ("503 Service Unavailable", ["Retry-After: 30"], 30.0), ("429 Too Many Requests", ["Retry-After: 0"], 0),
            ("500 Internal Server Error", ["Retry-After: 7"], 7), ("503 Service Unavailable", [], nil),
            ("503 Service Unavailable", ["Retry-After: soon"], nil),
            ("503 Service Unavailable", ["Retry-After: -5"], nil),
            // Relative to the origin's own clock, which may be wrong.
            (
                "503 Service Unavailable",
                ["Date: Sat, 01 Jan 2000 00:00:00 GMT", "Retry-After: Sat, 01 Jan 2000 00:01:30 GMT"], 90
            ),
            ("503 Service Unavailable", ["Retry-After: Sat, 01 Jan 2000 00:01:30 GMT"], 0),
            ("404 Not Found", ["Retry-After: 30"], nil),
        ] as [(String, [String], Double?)])
    func appliesOnlyToTransientFailures(status: String, headers: [String], seconds: Double?) async throws {
        #expect(try await failure(status, headers).retryAfter == seconds)
    }

    /// RFC 9111, section 1.2.2.
    @Test(arguments: [String(repeating: "9", count: 400), "Fri, 31 Dec 9999 23:59:59 GMT"])
    func capsDelaysAt2147483648Seconds(value: String) async throws {
        let found = try await failure("503 Service Unavailable", ["Retry-After: \(value)"])
        #expect(found.retryAfter == 2_147_483_648)
    }

    @Test func convertsDatesToDelays() async throws {
        let found = try await failure(
            "503 Service Unavailable", ["Retry-After: Thu, 01 Jan 2060 00:00:00 GMT"])
        let expected = 2_840_140_800 - Double(time(nil))
        #expect(abs((found.retryAfter ?? 0) - expected) < 60)
    }
}
