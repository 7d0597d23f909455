import JSON

/// What is printed of a plan.
struct PlanReport {
    let plan: CapacityPlan
    let workload: Workload
    let costs: Costs
    let rules: PlanRules
    /// How many pictures were measured; 0 where figures were given.
    let pictures: Int

    /// For people: a line for each thing that there must be, then what to look at.
    var text: String {
        let job = costs.worker(workload) * 1000
        let basis = pictures == 0 ? "as you say" : "measured here with \(counted(pictures, "picture"))"
        var lines = [
            "A job takes \(decimal(job, places: 2)) ms of a worker's processor; a rendering \(decimal(costs.rendering * 1000, places: 2)) ms, \(basis).",
            "",
        ]
        let rows: [(String, String)] = [
            (
                "workers",
                "\(plan.workers) with \(counted(rules.processors, "processor")) and \(size(plan.workerBytes)) each\(spare)"
            ),
            ("partitions", "\(plan.partitions) of each lane: halcyon topics create --partitions \(plan.partitions)"),
            (
                "jobs take",
                "\(span(plan.times.half)), 99 of 100 at most \(span(plan.times.most)), when their results are made"
            ),
            ("origins", "\(whole(plan.fetchesUnderWay)) loads under way, \(size(plan.originTraffic)) a second"),
            (
                "Redis",
                "\(counted(plan.redisServers, "server")) by work; \(size(plan.resultMemory + plan.sourceMemory)) for "
                    + "\(whole(plan.storedResults)) results (\(size(plan.resultMemory))) and kept sources (\(size(plan.sourceMemory)))"
            ),
            ("Kafka", "\(size(plan.kafkaTraffic)) a second, \(size(plan.kafkaDisk)) kept; both times the replication"),
            ("gateways", "\(decimal(plan.gatewayProcessors, places: 2)) processors of each for following what is done"),
        ]
        lines += rows.map { name, text in name.padded(to: 12) + text }
        if !notes.isEmpty { lines += [""] + notes }
        return lines.joined(separator: "\n")
    }

    private var spare: String {
        let reason =
            switch plan.bound {
            case .processors:
                "; their work is \(decimal(plan.processors, places: 1)) processors, \(percent(rules.utilization)) busy"
            case .fetches: "; for the loads under way, more than for their work"
            case .nothing: ""
            }
        return (rules.spare > 0 ? ", \(rules.spare) of them to spare" : "") + reason
    }

    /// What somebody should think of who does as the plan says.
    private var notes: [String] {
        var notes: [String] = []
        if plan.bound == .fetches {
            notes.append(
                "Waiting for origins asks for the most workers: more memory and a larger worker.fetches do with fewer.")
        }
        if plan.redisServers > 1 || plan.resultMemory > 50e9 {
            notes.append(
                "Use a Redis Cluster (redis+cluster://): one server uses one processor, and its memory is copied to be saved."
            )
        }
        if plan.gatewayProcessors > 0.5 {
            notes.append("Each gateway follows all events: a few large gateways do with less than many small ones.")
        }
        if workload.hitRatio == 0 {
            notes.append(
                "No hits are counted on (--hit-ratio): each costs \(whole(costs.hit * 1e6)) µs in place of a rendering."
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

    /// The same as numbers: seconds, bytes, and both for a second.
    var json: [UInt8] {
        let groups: [(String, [(String, Double)])] = [
            (
                "costs",
                [
                    ("job", costs.worker(workload)), ("rendering", costs.rendering), ("hit", costs.hit),
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
        return JSONWriter.object { writer in
            for (name, members) in groups {
                writer.name(name)
                writer.object { writer in
                    for (name, value) in members {
                        // Counts are whole, and so are most bytes.
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
