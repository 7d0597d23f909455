import Glibc
import HalcyonCluster
import Measuring
import TestSupport
import Vips

/// The cost of a job for a worker, end to end: `ClusterBenchmark HALCYON FOLDER [ROUNDS]`, and how tenants share one
/// (``Fairness``): `ClusterBenchmark HALCYON FOLDER fairness [TENANTS…]`.
///
/// HALCYON is the executable, run as a worker of its own on Apache Kafka (KAFKA_HOME; the mock cluster without), a redis-server and an
/// nginx that serves FOLDER's photographs. In rounds that take turns: the two plain C loops over the photographs, then as many jobs that
/// miss the result tier (fetch, decode, 400×300 JPEG, store, event). At the end jobs that hit it. Prints the worker's CPU time a job,
/// user and system over all its threads, and the ratios to the loops.
@main struct ClusterBenchmark {
    static let missesARound = 8  // of each photograph
    static let hits = 40_000

    static func main() async throws {
        let arguments = CommandLine.arguments
        if arguments.count > 3, arguments[3] == "fairness" {
            let counts = arguments.dropFirst(4).compactMap { Int($0) }
            return try await Fairness.run(
                arguments[1], try jpegs(in: arguments[2]), tenants: counts.isEmpty ? [2, 200] : counts)
        }
        guard arguments.count > 2, let rounds = arguments.count > 3 ? Int(arguments[3]) : 3, rounds > 0 else {
            print(
                "usage: ClusterBenchmark HALCYON FOLDER [ROUNDS | fairness [TENANTS…]]   FOLDER holds JPEG photographs of some 1600 pixels"
            )
            exit(2)
        }
        let photographs = try jpegs(in: arguments[2])
        VipsLibrary.start()
        let fixture = try await OneWorker(executable: arguments[1], photographs: photographs)
        do {
            try await measure(fixture, photographs, rounds: rounds)
        } catch {
            await fixture.remove()
            throw error
        }
        await fixture.remove()
    }

    static func measure(_ fixture: OneWorker, _ photographs: [[UInt8]], rounds: Int) async throws {
        let count = photographs.count
        _ = try await fixture.cost(of: (0..<2 * count).map { fixture.job($0, "warm") })
        var (thumbnail, fast, miss): ([Double], [Double], [Double]) = ([], [], [])
        for round in 0..<rounds {
            let start = processorTime()
            _ = PlainLoops.thumbnail(photographs)
            let middle = processorTime()
            _ = PlainLoops.fast(photographs)
            thumbnail.append((middle - start) / Double(count))
            fast.append((processorTime() - middle) / Double(count))
            let jobs = (0..<missesARound * count).map { fixture.job($0, "round\(round)-") }
            miss.append(try await fixture.cost(of: jobs).processor)
        }
        let hot = (0..<hits).map { fixture.job($0 % count, "warm", id: "hit\($0)") }
        _ = try await fixture.cost(of: (0..<4_000).map { fixture.job($0 % count, "warm", id: "heat\($0)") })
        let hit = try await fixture.cost(of: hot)
        // The first job of a tenant makes looking ahead begin.
        func shared(_ count: Int, _ tag: String) -> [[UInt8]] {
            (0..<count).map {
                fixture.job($0 % photographs.count, "warm", id: "\(tag)\($0)", tenant: "tenant\($0 % 2)")
            }
        }
        _ = try await fixture.cost(of: shared(4_000, "shared heat"))
        let sharedHit = try await fixture.cost(of: shared(hits, "shared hit"))
        let plain = try await fixture.plainCost(ofLast: hits * 9 / 10)

        print("\(count) photographs, \(rounds) rounds, libvips \(VipsLibrary.version), on \(fixture.broker.name)")
        print("vips_thumbnail  \(decimal(median(thumbnail) * 1e3, 2)) ms CPU a picture")
        print("fast loop       \(decimal(median(fast) * 1e3, 2)) ms CPU a picture")
        print("worker, miss    \(decimal(median(miss) * 1e3, 2)) ms CPU a job")
        let (toThumbnail, toFast) = (zip(miss, thumbnail).map(/), zip(miss, fast).map(/))
        print(
            "a miss is \(decimal(median(toThumbnail), 2)) of vips_thumbnail, \(decimal(median(toFast), 2)) of the fast loop"
        )
        print(
            "a hit is \(decimal(hit.processor * 1e6, 1)) µs CPU: \(Int(1 / hit.processor)) jobs a CPU-second,"
                + " \(Int(1 / hit.wall)) a second here")
        print(
            "a hit of one of two tenants is \(decimal(sharedHit.processor * 1e6, 1)) µs CPU:"
                + " \(decimal(sharedHit.processor / hit.processor, 3)) of one without a tenant")
        print(
            "plain C loop    \(decimal(plain * 1e6, 1)) µs CPU a hit: the worker does \(decimal(plain / hit.processor, 2))"
                + " of its hits for each second of CPU")
    }
}
