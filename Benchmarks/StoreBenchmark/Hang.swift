import Concurrency
import Measuring
import TestSupport

/// The memory of a worker whose store accepts everything and never answers.
enum Hang {
    private static let queueBytes = 16 << 20

    static func measure(_ executable: String, jobs: Int) async throws {
        let picture = try SmallPicture(side: 96)
        let origins = Lock<[RawOrigin]>([])
        try await withClusters(["none", "hanging"]) { name, brokers in
            var store = Store.none
            if name == "hanging" {
                let origin = RawOrigin(keepsLog: false) { _ in [.awaitEnd] }
                origins.withLock { $0.append(origin) }
                store = .hanging(origin)
            }
            return try await Cluster(
                name, executable: executable, brokers: brokers, store: store,
                [
                    "HALCYON_RESULTS_STORE_QUEUEBYTES": "\(queueBytes)",
                    "HALCYON_RESULTS_STORE_WRITETIMEOUT": "10s", "HALCYON_RESULTS_STORE_READTIMEOUT": "1s",
                ])
        } _: { clusters, broker in
            say("\(jobs) jobs, on \(broker)")
            var peaks: [Int] = []
            for (name, cluster) in zip(["without a store", "with a store that hangs"], clusters) {
                let clock = ContinuousClock()
                let start = clock.now
                let ended = try await cluster.end(Array(0..<jobs), atOnce: 256) { picture.job($0, width: 160) }
                let took = start.duration(to: clock.now) / .seconds(1)
                peaks.append(peakMemory(of: cluster.worker.pid))
                say(
                    "\(name): \(ended.count { $0.origin != nil }) of \(jobs) ready in \(decimal(took, 1)) s, p99 "
                        + "\(decimal(percentile(ended.map(\.seconds), 0.99), 2)) s, peak memory "
                        + "\(peaks[peaks.count - 1] >> 20) MiB")
            }
            let bytes = Int(try await clusters[0].redis.run("INFO", "memory").memory)
            say("results: \(bytes / jobs) bytes each in Redis, \(bytes >> 20) MiB; the queue: \(queueBytes >> 20) MiB")
            say("more memory with the store: \((peaks[1] - peaks[0]) >> 20) MiB")
            say("connections to the store: \(origins.withLock { $0.reduce(0) { $0 + $1.connections } })")
        }
    }
}

extension String {
    /// `used_memory` in the output of `INFO memory`.
    var memory: Double {
        let line = split(whereSeparator: \.isNewline).first { $0.hasPrefix("used_memory:") }
        return line.flatMap { Double($0.dropFirst("used_memory:".utf8.count)) } ?? 0
    }
}
