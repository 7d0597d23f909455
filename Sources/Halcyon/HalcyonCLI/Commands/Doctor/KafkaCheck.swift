import HalcyonCluster
import HalcyonNotifications
import Kafka

/// Checks Kafka: its availability, the health of the topics, and the lag of the consumer groups.
struct KafkaCheck {
    let access: KafkaAccess
    /// The consumer group of the workers.
    let group: String
    /// The consumer groups of the notifiers.
    let notifiers: [NotifierGroup]

    private static let timeout = Duration.seconds(5)

    func findings() async -> [DoctorReport] {
        let admin: Admin
        do throws(KafkaError) {
            admin = try Admin(properties: access.properties.admin)
        } catch {
            return [.broken("Kafka", "\(error)", mend: "correct kafka.properties")]
        }
        let findings = await findings(by: admin)
        await admin.close()
        return findings
    }

    private func findings(by admin: Admin) async -> [DoctorReport] {
        let metadata: ClusterMetadata
        do throws(KafkaError) {
            metadata = try await admin.metadata(within: Self.timeout)
        } catch {
            let reason = admin.connectionFailure
            let mend =
                reason.map(CommandError.isAboutSecurity) == true
                ? "correct kafka.properties: security.protocol, and the settings of ssl and sasl"
                : "start it, or correct its address (kafka.brokers, --brokers) and kafka.properties"
            return [
                .broken("Kafka", "no answer from \(access.brokers): \(reason ?? error.message)", mend: mend)
            ]
        }
        let brokers = metadata.brokers.map { "\($0.host):\($0.port)" }.joined(separator: ", ")
        let isThere = DoctorReport.ok("Kafka", "\(counted(metadata.brokers.count, "broker")) at \(brokers)")
        var findings = [isThere] + access.topics.all.map { topic($0, metadata) }
        findings.append(
            await lag(of: group, in: access.topics.taken, by: admin, metadata, saying: "jobs", "processed"))
        for notifier in notifiers {
            findings.append(
                await lag(of: notifier.name, in: notifier.topics, by: admin, metadata, saying: "events", "delivered"))
        }
        return findings
    }

    private func topic(_ name: String, _ metadata: ClusterMetadata) -> DoctorReport {
        guard let partitions = metadata.topics[name] else {
            return .broken("topic", "\(name) is missing", mend: "run `halcyon topics create`")
        }
        let leaderless = partitions.filter { $0.leader == nil }.count
        if leaderless > 0 {
            return .broken(
                "topic", "\(name): \(counted(leaderless, "partition")) of \(partitions.count) without a leader",
                mend: "restart the brokers that hold them")
        }
        let behind = partitions.filter { $0.inSync.count < $0.replicas.count }.count
        if behind > 0 {
            return .warning(
                "topic", "\(name): \(counted(behind, "partition")) of \(partitions.count) not fully replicated",
                mend: "restart the unavailable brokers")
        }
        let replicas = partitions.first?.replicas.count ?? 0
        return .ok("topic", "\(name): \(counted(partitions.count, "partition")), \(counted(replicas, "replica"))")
    }

    /// The lag of a consumer group in each topic.
    private func lag(
        of group: String, in topics: [String], by admin: Admin, _ metadata: ClusterMetadata, saying what: String,
        _ done: String
    ) async -> DoctorReport {
        do throws(KafkaError) {
            let lag = try await GroupLag.of(group, in: topics, by: admin, metadata, within: Self.timeout)
            let counts = topics.map { "\($0) \(lag.count(in: $0))" }
            let message = "\(what) not yet \(done) by group \(group): \(counts.joined(separator: ", "))"
            if !lag.hasCommitted, lag.waiting.contains(where: { $0.value > 0 }) {
                return .warning(
                    "lag", "\(message); it has never committed", mend: "start a worker with `halcyon worker`")
            }
            return .ok("lag", message)
        } catch {
            return .warning(
                "lag", "cannot read the lag of group \(group): \(error)", mend: "check the group coordinator")
        }
    }
}
