import Glibc
import Measuring
import TestSupport
import Vips

/// What slow origins do to the jobs of others: `OriginBenchmark HALCYON [SECONDS]`.
///
/// HALCYON is the executable, run as a worker on librdkafka's mock cluster and a redis-server. Of 50 origins, each a server of
/// its own, 35 answer within 20 ms. Jobs come at a steady rate, each for a source of its own, in turn for each origin: first
/// for the 35 alone, then for all, when the other 15 let a byte drip now and then and never come to an end. Prints, of the
/// jobs for the 35, the time from the sending to the event, alone and beside the others, and the ratio of the two.
@main struct OriginBenchmark {
    static let origins = 50
    static let slow = 15
    /// Jobs a second for all origins.
    static let rate = 50.0

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 1, let seconds = arguments.count > 2 ? Int(arguments[2]) : 30, seconds > 0 else {
            say("usage: OriginBenchmark HALCYON [SECONDS]   SECONDS of each of the two parts; 30 unless said")
            exit(2)
        }
        VipsLibrary.start()
        let fixture = try await BenchmarkFixture(executable: arguments[1], origins: origins, slow: slow)
        do {
            try await measure(fixture, seconds)
        } catch {
            await fixture.remove()
            throw error
        }
        await fixture.remove()
    }

    static func measure(_ fixture: BenchmarkFixture, _ seconds: Int) async throws {
        let healthy = Array(slow..<origins)
        _ = try await fixture.run(healthy, rate: rate, seconds: 3, tag: "warm")
        let alone = try await fixture.run(
            healthy, rate: rate * Double(healthy.count) / Double(origins), seconds: seconds, tag: "alone")
        let beside = try await fixture.run(Array(0..<origins), rate: rate, seconds: seconds, tag: "beside")
            .filter { $0.origin >= slow }
        for (name, jobs) in [("alone", alone), ("beside", beside)] {
            let times = jobs.map(\.seconds)
            say(
                "\(name): \(jobs.count) jobs, p50 \(decimal(percentile(times, 0.5) * 1e3, 1)) ms, "
                    + "p99 \(decimal(percentile(times, 0.99) * 1e3, 1)) ms, failed \(jobs.count { !$0.isReady })")
        }
        let ratio = percentile(beside.map(\.seconds), 0.99) / percentile(alone.map(\.seconds), 0.99)
        say("p99 beside \(slow) slow ones of \(origins) origins is \(decimal(ratio, 2)) of p99 alone")
    }
}
