import Foundation
import HalcyonCluster
import Kafka
import TestSupport
import Testing

@testable import HalcyonGateway

/// What a request about dead letters may take, of a topic that has many.
@Suite(.limitedParallelism) struct DeadLimitTests {
    @Test func tenThousandLettersAreReadPageByPage() async throws {
        try await GatewayFixture.with { fixture in
            let records = (0..<10_000).map { number in
                DeadLetterFixture.record(
                    "\(number)", code: number % 1000 == 7 ? "timeout" : "http_error", partition: Int32(number % 2),
                    fixture.topics)
            }
            try await fixture.dead.put(records)
            try await fixture.withGateway { (ask: Asking) async throws in
                let before = try Self.residentBytes()
                let pages = try await ask.pages("limit=1000")
                #expect(Set(pages.joined()).count == 10_000 && pages.joined().count == 10_000)
                #expect(pages.allSatisfy { $0.count <= 1000 })
                #expect(try await ask.pages("code=timeout").joined().count == 10)
                // All that is read is about 8 MB, a page of it 0.3 MB, and the book 16 bytes a letter; librdkafka's queues are bounded.
                #expect(try Self.residentBytes() - before < 128 << 20)
            }
        }
    }

    private static func residentBytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        let pages = try #require(Int(status.split(separator: " ")[1]))
        return pages * Int(getpagesize())
    }
}
