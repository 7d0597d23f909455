import HalcyonModel
import JSON

/// What is printed of a load.
struct BenchReport {
    let figures: BenchFigures
    /// From the first job to the last end.
    let elapsed: Duration

    private static let percentiles = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)]

    private var perSecond: Double { Double(figures.ended) / max(elapsed / .seconds(1), 0.001) }

    // MARK: For people

    var text: String {
        var lines = [
            "jobs        \(figures.ended) in \(spanText(milliseconds: elapsed.milliseconds)), \(decimal(perSecond, places: 1))/s: "
                + "\(figures.ready) ready, \(figures.failed) failed"
                + (figures.unfinished > 0 ? ", \(figures.unfinished) go on" : ""),
            "latency     \(Self.text(figures.latency))",
        ]
        let ratios: [(ResultOrigin, String)] = [
            (.memory, "hits"), (.coalesced, "coalesced"), (.sourceCache, "from kept sources"), (.network, "fetched"),
        ]
        let parts = ratios.compactMap { origin, word in
            figures.part(origin).map { "\(decimal($0 * 100, places: 1)) % \(word)" }
        }
        if !parts.isEmpty { lines.append("results     \(parts.joined(separator: ", "))") }
        for stage in Timings.Stage.allCases {
            guard let spread = figures.stages[stage.name] else { continue }
            lines.append("  \(stage.name)".padded(to: 12) + "\(Self.text(spread))  (\(spread.count) jobs)")
        }
        let failures = figures.failures.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        if !failures.isEmpty {
            lines.append("failures    \(failures.map { "\($0.value) \($0.key)" }.joined(separator: ", "))")
        }
        return lines.joined(separator: "\n")
    }

    private static func text(_ spread: Spread) -> String {
        let parts = percentiles.map { name, part in
            "\(name) \(spread.percentile(part).map { spanText(milliseconds: $0) } ?? "-")"
        }
        return (parts + ["max \(spanText(milliseconds: spread.longest))"]).joined(separator: "  ")
    }

    // MARK: For programs

    var json: [UInt8] {
        JSONWriter.object { writer in
            writer.member("seconds", elapsed / .seconds(1))
            writer.member("submitted", figures.submitted)
            writer.member("ready", figures.ready)
            writer.member("failed", figures.failed)
            writer.member("unfinished", figures.unfinished)
            writer.member("perSecond", perSecond)
            writer.member("hitRatio", figures.part(.memory))
            writer.member("coalescingRatio", figures.part(.coalesced))
            writer.name("origins")
            writer.object { writer in
                for (name, count) in figures.origins.sorted(by: { $0.key < $1.key }) { writer.member(name, count) }
            }
            writer.name("failures")
            writer.object { writer in
                for (name, count) in figures.failures.sorted(by: { $0.key < $1.key }) { writer.member(name, count) }
            }
            writer.name("latency")
            Self.write(figures.latency, to: &writer)
            writer.name("stages")
            writer.object { writer in
                for stage in Timings.Stage.allCases {
                    guard let spread = figures.stages[stage.name] else { continue }
                    writer.name(stage.name)
                    Self.write(spread, to: &writer)
                }
            }
        }
    }

    /// Milliseconds.
    private static func write(_ spread: Spread, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("count", spread.count)
            for (name, part) in percentiles { writer.member(name, spread.percentile(part)) }
            writer.member("max", spread.count == 0 ? nil : spread.longest)
        }
    }
}
