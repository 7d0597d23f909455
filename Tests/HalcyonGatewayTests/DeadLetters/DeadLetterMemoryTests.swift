import Foundation
import HalcyonCluster
import Kafka
import TestSupport
import Testing

@testable import HalcyonGateway

/// The memory used for requests about a topic with many dead letters.
@Suite(.limitedParallelism, .extended) struct DeadLetterMemoryTests {
    @Test func pagesThroughTenThousandInBoundedMemory() async throws {
        try await GatewayFixture.with { fixture in
            let records = (0..<10_000).map { number in
                let code = number % 1000 == 7 ? "timeout" : "http_error"
                return DeadLetterFixture.record(
                    "\(number)", code: code, partition: Int32(number % 2), fixture.topics)
            }
            try await fixture.deadLetters.publish(records)
            try await fixture.withGateway { (client: GatewayClient) async throws in
                let before = try Self.residentBytes()
                let pages = try await client.pages("limit=1000")
                #expect(Set(pages.joined()).count == 10_000 && pages.joined().count == 10_000)
                #expect(pages.allSatisfy { $0.count <= 1000 })
                #expect(try await client.pages("code=timeout").joined().count == 10)
                // The topic has about 8 MB, a page 0.3 MB, and the index 16 bytes per dead letter. librdkafka's queues
                // are bounded.
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
