import Concurrency
import TestSupport
import Testing

@testable import HalcyonWorker

@Suite struct ResultMemoryTests {
    @Test func resultsShareThePermitsOfSources() async throws {
        let semaphore = PrioritySemaphore(2)
        let memory = ResultMemory(semaphore, bytesPerPermit: 1000)
        var results = (0..<3).map { _ in memory.hold(400) }
        // 1200 bytes take one permit; the other one is free.
        try await semaphore.acquire()
        let source = Task { try await semaphore.acquire() }
        try await until("the source waits") { semaphore.waiting == 1 }
        results.removeFirst()
        try await source.value
        results = []
        semaphore.release(2)
        for _ in 0..<2 { try await semaphore.acquire() }
        #expect(semaphore.waiting == 0)
    }
}
