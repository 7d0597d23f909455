import Concurrency
import Testing

@Suite struct TokenBucketTests {
    private static let start = ContinuousClock.now

    @Test func aBucketIsRefilledAsTimeGoesBy() {
        var bucket = TokenBucket(rate: 2, burst: 3, now: Self.start)
        for _ in 0..<3 { #expect(bucket.take(at: Self.start) == nil) }
        #expect(bucket.take(at: Self.start) == .milliseconds(500))
        #expect(!bucket.isFull(at: Self.start + .seconds(1)))
        #expect(bucket.take(at: Self.start + .milliseconds(500)) == nil)
        #expect(bucket.take(at: Self.start + .milliseconds(500)) == .milliseconds(500))
        #expect(bucket.isFull(at: Self.start + .seconds(2)))
        // It holds no more than it is large, and a clock that is behind takes nothing away.
        for _ in 0..<3 { #expect(bucket.take(at: Self.start + .seconds(100)) == nil) }
        #expect(bucket.take(at: Self.start + .seconds(90)) == .milliseconds(500))
    }
}
