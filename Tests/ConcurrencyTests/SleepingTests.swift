import Concurrency
import Testing

@Suite struct SleepingTests {
    @Test func sleepsUntilTheEndUnlessCancelled() async {
        let start = ContinuousClock.now
        #expect(await Task.sleepUnlessCancelled(for: .milliseconds(20)))
        #expect(start.duration(to: .now) >= .milliseconds(20))
        let sleeper = Task { await Task.sleepUnlessCancelled(until: .now + .seconds(600)) }
        sleeper.cancel()
        #expect(await sleeper.value == false)
    }
}
