import Concurrency
import Testing

@Suite struct BackoffTests {
    private struct Constant: RandomNumberGenerator {
        let value: UInt64
        mutating func next() -> UInt64 { value }
    }

    /// The random bits that produce one half. Zero produces zero.
    private static let half: UInt64 = 1 << 52

    private static func delays(_ count: Int, _ backoff: inout Backoff, from value: UInt64 = 0) -> [Duration] {
        var random = Constant(value: value)
        return (0..<count).map { _ in backoff.next(using: &random) }
    }

    @Test func delaysGrowUpToTheMaximum() {
        var backoff = Backoff(initial: .milliseconds(50), maximum: .seconds(1))
        #expect(Self.delays(7, &backoff) == [50, 100, 200, 400, 800, 1000, 1000].map { .milliseconds($0) })
        var tripling = Backoff(initial: .seconds(1), maximum: .seconds(10), factor: 3)
        #expect(Self.delays(4, &tripling) == [1, 3, 9, 10].map { .seconds($0) })
    }

    @Test func respectsTheRequestedMinimumDelay() {
        var backoff = Backoff(initial: .seconds(1), maximum: .seconds(4))
        let delays = [backoff.next(atLeast: .seconds(60)), backoff.next(atLeast: .seconds(1))]
        #expect(delays == [.seconds(60), .seconds(2)])
    }

    @Test func resetRestartsFromTheInitialDelay() {
        var backoff = Backoff(initial: .milliseconds(50), maximum: .seconds(1))
        _ = Self.delays(3, &backoff)
        backoff.reset()
        #expect(Self.delays(2, &backoff) == [.milliseconds(50), .milliseconds(100)])
    }

    @Test func jitterReducesDelaysByUpToItsFraction() {
        var longest = Backoff(initial: .seconds(1), maximum: .seconds(4), jitter: 0.5)
        var medium = longest
        #expect(Self.delays(4, &longest) == [1, 2, 4, 4].map { .seconds($0) })
        #expect(Self.delays(4, &medium, from: Self.half) == [0.75, 1.5, 3, 3].map { .seconds($0) })
        var full = Backoff(initial: .seconds(1), maximum: .seconds(4), jitter: 1)
        #expect(Self.delays(2, &full, from: Self.half) == [.milliseconds(500), .seconds(1)])
        let delays = (0..<50).map { _ in full.next() }
        #expect(Set(delays).count > 40 && delays.allSatisfy { (.zero ... .seconds(4)).contains($0) })
    }

    @Test func initialDelayIsCappedAtTheMaximum() {
        var backoff = Backoff(initial: .seconds(9), maximum: .seconds(5))
        #expect(Self.delays(2, &backoff) == [.seconds(5), .seconds(5)])
        var none = Backoff(initial: .zero, maximum: .zero)
        #expect(Self.delays(2, &none) == [.zero, .zero])
        // Many failed attempts cause no overflow.
        var long = Backoff(initial: .seconds(1), maximum: .seconds(86_400))
        #expect(Self.delays(1000, &long).last == .seconds(86_400))
    }
}
