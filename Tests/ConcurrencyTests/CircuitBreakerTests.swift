import Concurrency
import Testing

@Suite struct CircuitBreakerTests {
    private typealias Breaker = CircuitBreaker<String>

    private let start = ContinuousClock.now
    private let openTime = Backoff(initial: .seconds(5), maximum: .seconds(12))

    @Test func opensAfterConsecutiveFailures() {
        var breaker = Breaker(Breaker.Policy(failures: 3, openTime: openTime))
        let outcomes: [Breaker.Outcome] = [.failure, .failure, .success, .failure, .unknown, .failure]
        for outcome in outcomes { breaker.record(outcome, of: "a", isProbe: false, at: start) }
        #expect(breaker.state(at: start) == .closed && !breaker.isIdle)
        breaker.record(.failure, of: "a", isProbe: false, at: start)
        #expect(breaker.state(at: start) == .open(until: start + .seconds(5)))
        #expect(breaker.state(at: start + .seconds(5)) == .halfOpen)
    }

    @Test func opensAfterFailuresAmongRecentRequests() {
        var breaker = Breaker(
            Breaker.Policy(failures: 2, samples: 4, keys: 2, window: .seconds(10), openTime: openTime))
        func record(_ outcome: Breaker.Outcome, _ key: String, after seconds: Int) {
            breaker.record(outcome, of: key, isProbe: false, at: start + .seconds(seconds))
        }
        // Failures of only one key, among too many requests, and outside the window do not open it.
        for _ in 0..<3 { record(.failure, "a", after: 0) }
        for _ in 0..<4 { record(.success, "b", after: 0) }
        #expect(breaker.isIdle)
        record(.failure, "a", after: 0)
        record(.failure, "b", after: 10)
        #expect(breaker.state(at: start + .seconds(10)) == .closed)
        for _ in 0..<2 { record(.success, "c", after: 11) }
        record(.failure, "a", after: 19)
        #expect(breaker.state(at: start + .seconds(19)) == .open(until: start + .seconds(24)))
    }

    @Test func probeClosesOrReopens() {
        var breaker = Breaker(Breaker.Policy(failures: 1, openTime: openTime))
        var now = start
        breaker.record(.failure, of: "a", isProbe: false, at: now)
        for seconds in [5, 10, 12, 12] {
            #expect(breaker.state(at: now) == .open(until: now + .seconds(seconds)))
            // No probe may begin yet, and requests that began earlier are ignored.
            let isEarly = breaker.beginProbe(at: now)
            breaker.record(.success, of: "a", isProbe: false, at: now)
            now += .seconds(seconds)
            let isProbe = breaker.beginProbe(at: now)
            let isSecond = breaker.beginProbe(at: now)
            #expect(!isEarly && isProbe && !isSecond && breaker.state(at: now) == .probing)
            breaker.record(.failure, of: "a", isProbe: true, at: now)
        }
        now += .seconds(12)
        _ = breaker.beginProbe(at: now)
        breaker.record(.success, of: "a", isProbe: true, at: now)
        #expect(breaker.state(at: now) == .closed && breaker.isIdle)
        breaker.record(.failure, of: "a", isProbe: false, at: now)
        #expect(breaker.state(at: now) == .open(until: now + .seconds(5)))
    }

    @Test func probeWithoutAnOutcomeAllowsAnother() {
        var breaker = Breaker(Breaker.Policy(failures: 1, openTime: Backoff(initial: .zero, maximum: .zero)))
        breaker.record(.failure, of: "a", isProbe: false, at: start)
        for isAbandoned in [true, false] {
            let isProbe = breaker.beginProbe(at: start)
            #expect(isProbe)
            if isAbandoned {
                breaker.abandonProbe()
            } else {
                breaker.record(.unknown, of: "a", isProbe: true, at: start)
            }
            #expect(breaker.state(at: start) == .halfOpen)
        }
    }

    @Test func neverOpensWithAThresholdOfZero() {
        var breaker = Breaker(Breaker.Policy(failures: 0, openTime: openTime))
        for _ in 0..<100 { breaker.record(.failure, of: "a", isProbe: false, at: start) }
        #expect(breaker.state(at: start) == .closed && breaker.isIdle)
    }
}
