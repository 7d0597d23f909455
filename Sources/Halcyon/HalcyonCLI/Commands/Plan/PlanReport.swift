import JSON

/// The report on a plan.
struct PlanReport {
    let plan: CapacityPlan
    let workload: Workload
    let costs: Costs
    let rules: PlanRules
    /// The number of measured images, or 0 if the costs were given.
    let pictures: Int

    /// A text with a line for each resource, followed by notes.
    var text: String {
        let job = plan.processors / workload.rate * 1000
        let basis = pictures == 0 ? "as given" : "measured here with \(counted(pictures, "image"))"
        var lines = [
            """
            A job takes \(decimal(job, places: 2)) ms of processor time, and a rendering \
            \(decimal(costs.rendering * 1000, places: 2)) ms, \(basis).
            """,
            "",
        ]
        var rows: [(String, String)] = [
            (
                "workers",
                """
                \(plan.workers) with \(counted(rules.processors, "processor")) and \(size(plan.workerBytes)) each\
                \(spare)
                """
            ),
            ("partitions", "\(plan.partitions) of each lane: halcyon topics create --partitions \(plan.partitions)"),
            (
                "jobs take",
                "\(span(plan.times.half)) (p50), \(span(plan.times.most)) (p99) if they are rendered"
            ),
            ("origins", "\(whole(plan.fetchesUnderWay)) fetches in flight, \(size(plan.originTraffic)) per second"),
            (
                "Redis",
                """
                \(counted(plan.redisServers, "server")) by load; \(size(plan.resultMemory + plan.sourceMemory)) for \
                \(whole(plan.storedResults)) results (\(size(plan.resultMemory))) and cached sources \
                (\(size(plan.sourceMemory)))
                """
            ),
            (
                "Kafka",
                """
                \(size(plan.kafkaTraffic)) per second, \(size(plan.kafkaDisk)) retained; multiply by the replication \
                factor
                """
            ),
            ("gateways", "\(decimal(plan.gatewayProcessors, places: 2)) processors each for following events"),
        ]
        if let store = plan.store {
            rows.insert(
                (
                    "store",
                    """
                    \(size(store.bytes)) for \(whole(store.results)) results, serving \(percent(store.ratio)) of the hits; \
                    \(whole(store.puts)) PUT and \(whole(store.gets)) GET per second, \(size(store.written)) written \
                    and \(size(store.read)) read; \(decimal(store.processors, places: 2)) processors of the workers
                    """
                ), at: 5)
        }
        lines += rows.map { name, text in name.padded(to: 12) + text }
        if !notes.isEmpty { lines += [""] + notes }
        return lines.joined(separator: "\n")
    }

    private var spare: String {
        let reason =
            switch plan.bound {
            case .processors:
                "; work for \(decimal(plan.processors, places: 1)) processors at \(percent(rules.utilization)) load"
            case .fetches: "; bound by fetches in flight, not by processors"
            case .nothing: ""
            }
        return (rules.spare > 0 ? ", including \(rules.spare) spare" : "") + reason
    }

    /// Notes on the plan for the operator.
    private var notes: [String] {
        var notes: [String] = []
        if plan.bound == .fetches {
            notes.append(
                "Waiting for origins requires the most workers. More memory and a larger worker.fetches reduce it.")
        }
        if plan.redisServers > 1 || plan.resultMemory > 50e9 {
            notes.append(
                "Use a Redis Cluster (redis+cluster://): a single server uses only one processor, and persistence can "
                    + "double its memory."
            )
        }
        if plan.store == nil, plan.resultMemory > 50e9 {
            notes.append(
                "With a result store (results.store), Redis needs to hold only the results in use: --redis-bytes.")
        }
        if plan.gatewayProcessors > 0.5 {
            notes.append("Each gateway follows all events, so few large gateways need less than many small ones.")
        }
        if workload.hitRatio == 0 {
            notes.append(
                "The plan assumes no cache hits (--hit-ratio). A hit costs \(whole(costs.hit * 1e6)) µs instead of a "
                    + "rendering."
            )
        }
        return notes
    }

    private func size(_ bytes: Double) -> String {
        bytes < 1e12 ? byteText(Int(bytes)) : "\(decimal(bytes / 1e12, places: 1)) TB"
    }

    private func span(_ seconds: Double) -> String { spanText(milliseconds: seconds * 1000) }

    private func whole(_ value: Double) -> String { decimal(value, places: 0) }

    private func percent(_ part: Double) -> String { "\(decimal(part * 100, places: 0)) %" }

    /// The plan as JSON, in seconds, bytes and bytes per second.
    var json: [UInt8] {
        var groups: [(String, [(String, Double)])] = [
            (
                "costs",
                [
                    ("job", plan.processors / workload.rate), ("rendering", costs.rendering), ("hit", costs.hit),
                    ("miss", costs.miss), ("megabyte", costs.megabyte),
                ]
            ),
            (
                "workers",
                [
                    ("count", Double(plan.workers)), ("spare", Double(rules.spare)),
                    ("processors", Double(rules.processors)),
                    ("bytes", plan.workerBytes), ("work", plan.processors),
                ]
            ),
            ("times", [("mean", plan.times.mean), ("p50", plan.times.half), ("p99", plan.times.most)]),
            ("origins", [("underWay", plan.fetchesUnderWay), ("bytesPerSecond", plan.originTraffic)]),
            (
                "redis",
                [
                    ("servers", Double(plan.redisServers)), ("work", plan.redisProcessors),
                    ("results", plan.storedResults),
                    ("resultBytes", plan.resultMemory), ("sourceBytes", plan.sourceMemory),
                    ("bytesPerSecond", plan.redisTraffic),
                ]
            ),
            (
                "kafka",
                [
                    ("partitions", Double(plan.partitions)), ("bytesPerSecond", plan.kafkaTraffic),
                    ("bytesKept", plan.kafkaDisk),
                ]
            ),
            ("gateways", [("work", plan.gatewayProcessors)]),
        ]
        if let store = plan.store {
            groups.append(
                (
                    "store",
                    [
                        ("results", store.results), ("bytes", store.bytes), ("hitRatio", store.ratio),
                        ("putsPerSecond", store.puts), ("getsPerSecond", store.gets),
                        ("bytesWrittenPerSecond", store.written), ("bytesReadPerSecond", store.read),
                        ("work", store.processors), ("hit", costs.storeHit), ("write", costs.storeWrite),
                    ]
                ))
        }
        return JSONWriter.object { writer in
            for (name, members) in groups {
                writer.name(name)
                writer.object { writer in
                    for (name, value) in members {
                        // Write counts and most byte sizes as whole numbers.
                        if let whole = Int(exactly: value) {
                            writer.member(name, whole)
                        } else {
                            writer.member(name, (value * 1e9).rounded() / 1e9)
                        }
                    }
                }
            }
            writer.member("bound", plan.bound.rawValue)
            writer.name("notes")
            writer.array { writer in for note in notes { writer.value(note) } }
        }
    }
}
