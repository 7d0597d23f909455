import HalcyonCluster
import Kafka

/// Looks at Kafka: whether it answers, the topics and their health, and how far the workers are behind.
struct KafkaExamination {
    let access: KafkaAccess
    let group: String

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
        return [isThere] + access.topics.all.map { topic($0, metadata) } + (await lag(by: admin, metadata))
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

    /// Jobs that wait, lane by lane.
    private func lag(by admin: Admin, _ metadata: ClusterMetadata) async -> [Diagnosis] {
        let partitions = access.topics.lanes.flatMap { lane in
            (metadata.topics[lane] ?? []).map { TopicPartition(lane, $0.id) }
        }
        do throws(KafkaError) {
            let written = try await admin.watermarks(of: partitions, within: Self.patience)
            let committed = try await admin.committed(by: group, in: partitions, within: Self.patience)
            let waiting = written.mapValues { $0.upperBound - $0.lowerBound }.merging(
                committed.map { ($0.key, max(0, (written[$0.key]?.upperBound ?? 0) - $0.value.offset)) }
            ) { $1 }
            let total = waiting.values.reduce(0, +)
            let lanes = access.topics.lanes.map { lane in
                "\(lane) \(waiting.filter { $0.key.topic == lane }.values.reduce(0, +))"
            }
            let message = "jobs that group \(group) has not done: \(lanes.joined(separator: ", "))"
            if total > 0, committed.isEmpty {
                return [
                    .warning("lag", "\(message); it has never committed", mend: "start a worker: halcyon worker")
                ]
            }
            return [.ok("lag", message)]
        } catch {
            return [.warning("lag", "not known: \(error)", mend: "look whether the group coordinator is well")]
        }
    }
}
