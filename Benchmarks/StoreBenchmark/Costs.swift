import Measuring
import TestSupport

/// CPU time and latency of jobs, by where their results come from.
enum Costs {
    /// The results that are stored before the rounds and looked up in each of them.
    private static let stored = 200
    private static let (hits, misses, single) = (4000, 300, 20)

    private enum Kind: String, CaseIterable {
        case redis = "hit in Redis"
        case store = "hit in the store"
        case miss = "miss"
    }

    private struct Figures {
        var work: [Kind: [Double]] = [:]
        var seconds: [Kind: [Double]] = [:]
    }

    static func measure(_ executable: String, _ photographs: [[UInt8]], rounds: Int, root: String) async throws {
        let server = try await PhotographServer(photographs)
        let names = ["none", "folder", "memory", "s3"]
        try await withClusters(names) { name, brokers in
            try await Cluster(
                name, executable: executable, brokers: brokers, store: try await Store.named(name, in: root))
        } _: { clusters, broker in
            @Sendable func job(_ tag: String) -> @Sendable (Int) -> String {
                { #""source":"\#(server.url($0, tag))","width":400,"height":300,"format":"jpeg","quality":80"# }
            }
            for cluster in clusters { _ = try await cluster.cost(of: Array(0..<stored), writes: true, job("stored")) }
            var figures = names.map { _ in Figures() }
            // The first round warms up.
            for round in 0...rounds {
                var all = names.map { _ in Figures() }
                for turn in clusters.indices {
                    let index = (turn + round) % clusters.count
                    all[index] = try await self.round(round, clusters[index], job)
                }
                for index in clusters.indices where round > 0 {
                    figures[index].work.merge(all[index].work) { $0 + $1 }
                    figures[index].seconds.merge(all[index].seconds) { $0 + $1 }
                }
            }
            say("\(photographs.count) photographs, \(rounds) rounds, on \(broker), folder in \(root)")
            report(names, figures)
        }
        await server.remove()
    }

    private static func round(
        _ round: Int, _ cluster: Cluster, _ job: @Sendable (String) -> @Sendable (Int) -> String
    ) async throws -> Figures {
        var figures = Figures()
        func measure(_ kind: Kind, _ numbers: [Int], writes: Bool = false, _ tag: String) async throws {
            figures.work[kind] = [try await cluster.cost(of: numbers, writes: writes, job(tag))]
        }
        func time(_ kind: Kind, _ numbers: [Int], _ tag: String) async throws {
            figures.seconds[kind] = try await cluster.end(numbers, atOnce: 1, job(tag)).map(\.seconds)
        }
        try await measure(.miss, Array(0..<misses), writes: true, "round\(round)-")
        try await time(.miss, Array(misses..<misses + single), "round\(round)-")
        if case .none = cluster.store {
            // Without a store, a flush would lose the results.
        } else {
            _ = try await cluster.redis.run("FLUSHALL")
            try await measure(.store, Array(single..<stored), "stored")
            try await time(.store, Array(0..<single), "stored")
        }
        try await measure(.redis, (0..<hits).map { $0 % stored }, "stored")
        try await time(.redis, Array(0..<single), "stored")
        return figures
    }

    private static func report(_ names: [String], _ figures: [Figures]) {
        for (name, figures) in zip(names, figures) {
            for kind in Kind.allCases {
                guard let work = figures.work[kind], let seconds = figures.seconds[kind] else { continue }
                say(
                    "\(name): \(kind.rawValue): \(decimal(median(work) * 1e6, 0)) µs CPU, "
                        + "\(decimal(median(seconds) * 1e3, 1)) ms (p50), "
                        + "\(decimal(percentile(seconds, 0.95) * 1e3, 1)) ms (p95)")
            }
        }
        for (name, figures) in zip(names, figures).dropFirst() {
            guard let store = figures.work[.store], let redis = figures.work[.redis], let miss = figures.work[.miss]
            else { continue }
            say("\(name): a hit in the store is \(quotient(store, redis)) of a hit in Redis by CPU")
            say("\(name): a hit in the store is \(quotient(store, miss)) of a miss by CPU")
        }
        guard let plain = figures[0].work[.miss] else { return }
        for (name, figures) in zip(names, figures).dropFirst() {
            guard let miss = figures.work[.miss] else { continue }
            say("\(name): a miss with looking and writing behind is \(quotient(miss, plain)) of one without a store")
            let more = zip(miss, plain).map { max(0, $0 - $1) }
            say("\(name): looking and writing behind take \(decimal(median(more) * 1e6, 0)) µs CPU")
        }
    }
}
