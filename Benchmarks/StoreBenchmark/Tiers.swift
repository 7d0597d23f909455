import Glibc
import Measuring
import TestSupport

/// Many results through a Redis that holds a part of them.
enum Tiers {
    private static let memory = "200mb"
    private static let atOnce = 32

    /// - Returns: Whether everything was found where it had to be.
    static func measure(_ executable: String, count: Int, _ name: String, root: String) async throws -> Bool {
        let picture = try SmallPicture(side: 40)
        let tagged = min(10_000, count / 20)
        var isRight = true
        try await withClusters([name]) { name, brokers in
            try await Cluster(
                name, executable: executable, brokers: brokers, store: try await Store.named(name, in: root),
                redis: ["--maxmemory", memory, "--maxmemory-policy", "allkeys-lru"])
        } _: { clusters, broker in
            let cluster = clusters[0]
            let job: @Sendable (Int) -> String = { picture.job($0, width: 64) }
            say("\(count) results, \(tagged) with a tag, Redis with \(memory), \(name), on \(broker)")
            let clock = ContinuousClock()
            var start = clock.now
            let made = try await cluster.end(Array(0..<count), atOnce: atOnce) {
                job($0) + ($0 < tagged ? #","tags":["purged"]"# : "")
            }
            report("made", made)
            try await until("all results are written", within: .seconds(600)) { try await cluster.written() >= count }
            say("made and written in \(seconds(since: start)) s; Redis: \(try await keys(cluster))")

            var random = SystemRandomNumberGenerator()
            // One read of a hundred is about a result that was never made.
            func reads() -> [Int] { (0..<count / 4).map { _ in .random(in: 0..<count + count / 100, using: &random) } }
            report("random reads", try await cluster.end(reads(), atOnce: atOnce, job))
            _ = try await cluster.redis.run("FLUSHALL")
            report("random reads after FLUSHALL", try await cluster.end(reads(), atOnce: atOnce, job))

            start = clock.now
            let output = try await cluster.command("purge", "--tag", "purged")
            say(
                "purge of the tag: \(seconds(since: start)) s: \(output.split(separator: "\n").joined(separator: "; "))"
            )
            let all = try await cluster.end(Array(0..<count), atOnce: atOnce) {
                job($0) + #","cache":{"onlyIfCached":true}"#
            }
            report("reads of all that is stored", all)
            func isServed(_ job: Cluster.Ended) -> Bool { job.origin == "memory" || job.origin == "store" }
            let old = all.count { $0.number < tagged && isServed($0) }
            let lost = all.count { $0.number >= tagged && !isServed($0) }
            say(
                "purged results that were served: \(old) of \(tagged); others that were not: \(lost) of \(count - tagged)"
            )
            isRight = old == 0 && lost == 0
            report("made again", try await cluster.end(Array(0..<tagged), atOnce: atOnce, job))
        }
        return isRight
    }

    private static func seconds(since start: ContinuousClock.Instant) -> String {
        decimal(start.duration(to: .now) / .seconds(1), 1)
    }

    private static func keys(_ cluster: Cluster) async throws -> String {
        let memory = Int(try await cluster.redis.run("INFO", "memory").memory)
        let evicted =
            try await cluster.redis.run("INFO", "stats").split(whereSeparator: \.isNewline)
            .first { $0.hasPrefix("evicted_keys") } ?? ""
        return "\(memory >> 20) MiB, \(evicted)"
    }

    private static func report(_ name: String, _ ended: [Cluster.Ended]) {
        let groups = Dictionary(grouping: ended) { $0.origin ?? "not found" }
        for (origin, jobs) in groups.sorted(by: { $0.key < $1.key }) {
            let times = jobs.map { $0.seconds * 1e3 }
            say(
                "\(name): \(origin): \(jobs.count) (\(decimal(Double(jobs.count) / Double(ended.count) * 100, 1)) %), "
                    + "p50 \(decimal(percentile(times, 0.5), 1)), p95 \(decimal(percentile(times, 0.95), 1)), "
                    + "p99 \(decimal(percentile(times, 0.99), 1)) ms")
        }
    }
}
