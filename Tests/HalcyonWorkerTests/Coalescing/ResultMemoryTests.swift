import Concurrency
import TestSupport
import Testing

@testable import HalcyonWorker

@Suite struct ResultMemoryTests {
    @Test func resultsTogetherTakeFromWhatSourcesHave() async throws {
        let places = PrioritySemaphore(2)
        let memory = ResultMemory(places, bytesPerPermit: 1000)
        var results = (0..<3).map { _ in memory.hold(400) }
        // 1200 bytes are one place; the other is free.
        try await places.acquire()
        let source = Task { try await places.acquire() }
        try await until("the source waits") { places.waiting == 1 }
        results.removeFirst()
        try await source.value
        results = []
        places.release(2)
        for _ in 0..<2 { try await places.acquire() }
        #expect(places.waiting == 0)
    }
}
