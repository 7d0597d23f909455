import Concurrency
import Testing

@Suite struct TokenBucketTests {
    private static let start = ContinuousClock.now

    @Test func refillsAtItsRateUpToTheBurst() {
        var bucket = TokenBucket(rate: 2, burst: 3, now: Self.start)
        for _ in 0..<3 { #expect(bucket.take(at: Self.start) == nil) }
        #expect(bucket.take(at: Self.start) == .milliseconds(500))
        #expect(!bucket.isFull(at: Self.start + .seconds(1)))
        #expect(bucket.take(at: Self.start + .milliseconds(500)) == nil)
        #expect(bucket.take(at: Self.start + .milliseconds(500)) == .milliseconds(500))
        #expect(bucket.isFull(at: Self.start + .seconds(2)))
        // It holds at most the burst, and a clock that goes back removes no tokens.
        for _ in 0..<3 { #expect(bucket.take(at: Self.start + .seconds(100)) == nil) }
        #expect(bucket.take(at: Self.start + .seconds(90)) == .milliseconds(500))
    }
}
