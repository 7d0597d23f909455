import HalcyonCluster
import HalcyonNotify
import Kafka

/// Looks at Kafka: whether it answers, the topics and their health, and how far the workers are behind.
struct KafkaExamination {
    let access: KafkaAccess
    /// The consumer group of the workers.
    let group: String
    /// Those of who tells of events.
    let notifiers: [NotifierGroup]

    private static let patience = Duration.seconds(5)

    func findings() async -> [Diagnosis] {
        let admin: Admin
        do throws(KafkaError) {
            admin = try Admin(properties: access.properties.admin)
        } catch {
            return [.broken("Kafka", "\(error)", mend: "mend kafka.properties")]
        }
        let findings = await findings(by: admin)
        await admin.close()
        return findings
    }

    private func findings(by admin: Admin) async -> [Diagnosis] {
        let metadata: ClusterMetadata
        do throws(KafkaError) {
            metadata = try await admin.metadata(within: Self.patience)
        } catch {
            return [
                .broken(
                    "Kafka", "no answer from \(access.brokers): \(error.message)",
                    mend:
                        "start it, or name its address (kafka.brokers, --brokers); look at kafka.properties too"
                )
            ]
        }
        let brokers = metadata.brokers.map { "\($0.host):\($0.port)" }.joined(separator: ", ")
        let isThere = Diagnosis.ok("Kafka", "\(counted(metadata.brokers.count, "broker")) at \(brokers)")
        var findings = [isThere] + access.topics.all.map { topic($0, metadata) }
        findings.append(
            await lag(of: group, in: access.topics.taken, by: admin, metadata, saying: "jobs", "done"))
        for notifier in notifiers {
            findings.append(
                await lag(of: notifier.name, in: notifier.topics, by: admin, metadata, saying: "events", "told"))
        }
        return findings
    }

    private func topic(_ name: String, _ metadata: ClusterMetadata) -> Diagnosis {
        guard let partitions = metadata.topics[name] else {
            return .broken("topic", "\(name) is missing", mend: "halcyon topics create")
        }
        let leaderless = partitions.filter { $0.leader == nil }.count
        if leaderless > 0 {
            return .broken(
                "topic", "\(name): \(counted(leaderless, "partition")) of \(partitions.count) without a leader",
                mend: "bring back the brokers that hold them")
        }
        let behind = partitions.filter { $0.inSync.count < $0.replicas.count }.count
        if behind > 0 {
            return .warning(
                "topic", "\(name): \(counted(behind, "partition")) of \(partitions.count) not fully replicated",
                mend: "bring back the brokers that are away")
        }
        let replicas = partitions.first?.replicas.count ?? 0
        return .ok("topic", "\(name): \(counted(partitions.count, "partition")), \(counted(replicas, "replica"))")
    }

    /// What waits for a group, topic by topic.
    private func lag(
        of group: String, in topics: [String], by admin: Admin, _ metadata: ClusterMetadata, saying what: String,
        _ done: String
    ) async -> Diagnosis {
        do throws(KafkaError) {
            let lag = try await GroupLag.of(group, in: topics, by: admin, metadata, within: Self.patience)
            let counts = topics.map { "\($0) \(lag.count(in: $0))" }
            let message = "\(what) that group \(group) has not \(done): \(counts.joined(separator: ", "))"
            if !lag.hasCommitted, lag.waiting.contains(where: { $0.value > 0 }) {
                return .warning("lag", "\(message); it has never committed", mend: "start a worker: halcyon worker")
            }
            return .ok("lag", message)
        } catch {
            return .warning(
                "lag", "of group \(group) not known: \(error)", mend: "look whether the group coordinator is well")
        }
    }
}
