import Measuring

/// The latency of small tenants while 50,000 jobs of others wait in their lane, compared with that on an idle worker,
/// and the throughput of the flood, compared with that of the same jobs without tenants. All jobs miss the result
/// cache. One tenant in twenty is small: it submits at most half as many jobs as its share of the worker.
enum Fairness {
    static let flood = 50_000
    static let samples = 150
    /// The seconds for which throughput is measured.
    static let interval = 30.0
    /// The time until the origin answers: none, and as many milliseconds as one on the Internet often takes.
    static let delays = [0, 100]
    /// The seconds in which the flood moves to the overflow topic.
    static let settling = 15.0

    /// - Parameter tenants: the numbers of tenants to measure.
    static func run(_ executable: String, _ photographs: [[UInt8]], tenants counts: [Int]) async throws {
        let plain = try await measure(executable, photographs, tenants: 0)
        print("no tenants: \(decimal(plain.throughput, 1)) jobs a second")
        for (tenants, delay) in counts.flatMap({ count in delays.map { (count, $0) } }) {
            let shared = try await measure(executable, photographs, tenants: tenants, delay: delay)
            let (idle, busy) = (percentile(shared.idle, 0.95), percentile(shared.busy, 0.95))
            print(
                "\(tenants) tenants, origin answers after \(delay) ms: small ones wait "
                    + "\(decimal(busy * 1e3, 1)) ms at the 95th percentile, "
                    + "\(decimal(idle * 1e3, 1)) ms on an idle worker: \(decimal(busy / idle, 2)); "
                    + "\(decimal(shared.throughput, 1)) jobs a second: \(decimal(shared.throughput / plain.throughput, 3))"
            )
        }
    }

    /// - Parameters:
    ///   - tenants: the number of tenants with the small one; 0 for jobs without tenants.
    ///   - delay: the time until the origin answers, in milliseconds.
    private static func measure(
        _ executable: String, _ photographs: [[UInt8]], tenants: Int, delay: Int = 0
    ) async throws -> (idle: [Double], busy: [Double], throughput: Double) {
        let fixture = try await OneWorker(
            executable: executable, photographs: photographs, delay: .milliseconds(delay))
        do {
            let smallTenants = max(1, tenants / 20)
            func latencies(_ tag: String, at rate: Double = .infinity) async throws -> [Double] {
                var times: [Double] = []
                for number in 0..<samples {
                    let id = "\(tag)\(number)"
                    let small = tenants > 0 ? "small\(number % smallTenants)" : nil
                    try await Task.sleep(for: .seconds(1 / rate))
                    times.append(
                        try await fixture.latency(of: fixture.job(number, tag, id: id, tenant: small), id: id))
                }
                return times
            }
            _ = try await latencies("warm")
            let idle = try await latencies("idle")
            try await fixture.submit(
                (0..<flood).map { number in
                    fixture.job(number, "flood", tenant: tenants > 0 ? "big\(number % (tenants - smallTenants))" : nil)
                })
            try await Task.sleep(for: .seconds(settling))
            let clock = ContinuousClock()
            let before = fixture.endedJobs
            let first = try await clock.measure { try await Task.sleep(for: .seconds(interval)) }
            let throughput = Double(fixture.endedJobs - before) / (first / .seconds(1))
            // Without tenants the jobs would wait for the whole flood.
            let share = throughput / Double(tenants)
            let busy = tenants > 0 ? try await latencies("busy", at: share / 2 * Double(smallTenants)) : []
            await fixture.remove()
            return (idle, busy, throughput)
        } catch {
            await fixture.remove()
            throw error
        }
    }
}
