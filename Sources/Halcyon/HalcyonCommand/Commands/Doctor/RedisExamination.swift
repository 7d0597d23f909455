import Redis

/// Looks at Redis: who answers, what is away, what it does when its memory is full, whether it saves to disk.
struct RedisExamination {
    let endpoint: RedisEndpoint

    func findings() async -> [Diagnosis] {
        let client = RedisClient(endpoint)
        var findings: [Diagnosis]
        do throws(RedisError) {
            let words = try await client.sendToEveryMaster(["INFO"])
            switch endpoint.servers {
            case .one: findings = Self.findings(of: words, named: "", at: "\(endpoint)")
            case .sentinels(_, let service):
                findings =
                    Self.findings(
                        of: words, named: "master of \(service), ", at: words.first.map { "\($0.master)" } ?? "")
                    + (await sentinels())
            case .cluster:
                findings = Self.findings(of: words, named: "master, ", at: nil) + (await cluster(client))
            }
        } catch {
            findings = [
                .broken(
                    "Redis", "no answer from \(endpoint): \(error)",
                    mend: "start it, or name its address (redis.url, --redis)")
            ]
        }
        await client.close()
        return findings
    }

    /// What each master said to INFO; those of a cluster are known by their addresses.
    private static func findings(of words: [RedisClient.Word], named kind: String, at address: String?) -> [Diagnosis] {
        words.flatMap { word -> [Diagnosis] in
            switch word.outcome {
            case .success(let reply):
                RedisInfo(reply.string ?? "").findings(
                    kind: kind, at: address ?? "\(word.master)", among: address == nil ? "\(word.master): " : "")
            case .failure(let error):
                [
                    .broken(
                        "Redis", "no answer from \(address ?? "the master at \(word.master)"): \(error)",
                        mend: "start it; meanwhile its results are made again, and come in their events")
                ]
            }
        }
    }

    /// What the nodes say of the cluster as a whole.
    private func cluster(_ client: RedisClient) async -> [Diagnosis] {
        // That Redis does not answer was said above.
        guard let text = try? await client.send("CLUSTER", "NODES").string else { return [] }
        var findings = ClusterNodes(text).findings
        // Who may not ask for it is told nothing about it.
        let coverage = try? await client.sendToEveryMaster(["CONFIG", "GET", "cluster-require-full-coverage"])
        let isRequired = coverage?.contains { node in
            if case .success(let reply) = node.outcome { reply.array?.last?.string == "yes" } else { false }
        }
        if isRequired == true {
            findings.append(
                .warning(
                    "cluster", "while one master is away, the others refuse to serve too",
                    mend: "CONFIG SET cluster-require-full-coverage no, on every node"))
        }
        return findings
    }

    /// Whether every sentinel answers.
    private func sentinels() async -> [Diagnosis] {
        let away = await withTaskGroup(of: Diagnosis?.self) { group in
            for sentinel in endpoint.sentinels {
                group.addTask {
                    let client = RedisClient(sentinel)
                    var diagnosis: Diagnosis?
                    do throws(RedisError) {
                        _ = try await client.send("PING")
                    } catch {
                        diagnosis = .warning(
                            "sentinels", "no answer from \(sentinel): \(error)",
                            mend: "start it: a lost master is replaced only while most sentinels agree")
                    }
                    await client.close()
                    return diagnosis
                }
            }
            var away: [Diagnosis] = []
            for await diagnosis in group { if let diagnosis { away.append(diagnosis) } }
            return away.sorted { $0.message < $1.message }
        }
        return away.isEmpty ? [.ok("sentinels", "\(endpoint.sentinels.count) answer")] : away
    }
}
