import Glibc
import Measuring

/// What exactly-once delivery costs beside at-least-once: `DeliveryBenchmark HALCYON FOLDER [ROUNDS]`.
///
/// HALCYON is the executable, run as one worker of each mode on one Apache Kafka (KAFKA_HOME), a redis-server and an nginx that serves
/// FOLDER's photographs. In rounds that take turns: jobs that hit the result tier, jobs that miss it, and jobs one at a time, from whose
/// sending to the event that a reader of committed events sees the latency is measured. Prints the ratio of the throughputs, and what
/// the median latency has more.
@main struct DeliveryBenchmark {
    static let hits = 10_000
    static let misses = 200
    static let single = 100

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 2, let rounds = arguments.count > 3 ? Int(arguments[3]) : 3, rounds > 0 else {
            print("usage: DeliveryBenchmark HALCYON FOLDER [ROUNDS]   FOLDER holds JPEG photographs")
            exit(2)
        }
        let photographs = try jpegs(in: arguments[2])
        let servers = try await Servers(photographs: photographs)
        do {
            try await measure(servers, executable: arguments[1], rounds: rounds)
        } catch {
            await servers.remove()
            throw error
        }
        await servers.remove()
    }

    private static func measure(_ servers: Servers, executable: String, rounds: Int) async throws {
        let modes = ["at-least-once", "exactly-once"]
        var tracks: [Track] = []
        for mode in modes { tracks.append(try await Track(servers, executable: executable, mode: mode)) }
        var hits = [[Double]](repeating: [], count: 2)
        var misses = hits
        var latencies = hits
        for track in tracks {
            _ = try await track.throughput(
                of: (0..<servers.photographs.count).map { track.job($0, "warm", id: "warm\($0)") })
            _ = try await track.throughput(of: (0..<2000).map { track.job($0, "warm", id: "heat\($0)") })
        }
        for round in 0..<rounds {
            // Each begins in turn.
            for number in round % 2 == 0 ? [0, 1] : [1, 0] {
                let track = tracks[number]
                let hot = (0..<Self.hits).map { track.job($0, "warm", id: "hit\(round)-\($0)") }
                hits[number].append(try await track.throughput(of: hot))
                let cold = (0..<Self.misses).map { track.job($0, "round\(round)-\($0)-", id: "miss\(round)-\($0)") }
                misses[number].append(try await track.throughput(of: cold))
                for index in 0..<Self.single {
                    latencies[number].append(
                        try await track.latency(of: track.job(0, "warm", id: "one\(round)-\(index)")))
                }
            }
        }
        for track in tracks { await track.close() }
        for (mode, number) in zip(modes, 0...) {
            print(
                "\(mode): \(Int(median(hits[number]))) hits a second, \(decimal(median(misses[number]), 1)) misses a second,"
                    + " latency of a hit \(decimal(median(latencies[number]) * 1e3, 1)) ms (p50)")
        }
        print("hits: exactly-once is \(quotient(hits[1], hits[0])) of at-least-once")
        print("misses: exactly-once is \(quotient(misses[1], misses[0])) of at-least-once")
        print("added latency p50 \(decimal(max(0, median(latencies[1]) - median(latencies[0])) * 1e3, 1)) ms")
    }
}
