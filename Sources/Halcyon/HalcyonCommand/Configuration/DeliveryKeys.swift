import HalcyonCluster
import HalcyonWorker
import Settings

/// What is promised of each job's terminal event.
enum Guarantee: String, CaseIterable, Sendable {
    case atLeastOnce = "at-least-once"
    case exactlyOnce = "exactly-once"
}

/// How often a job ends, and who a worker is to Kafka.
extension Keys {
    static let delivery = SettingKey(
        "delivery", .oneOf, default: Guarantee.atLeastOnce,
        help:
            "How often readers of committed events see a job end: at-least-once, or exactly-once, by transactions of Apache Kafka."
    )
    static let deliveryLinger = SettingKey(
        "delivery.linger", .duration(in: .zero ... .seconds(1)), default: TransactionOptions().linger,
        help: "For how long a job that has ended waits for others to be committed with it; exactly-once only.")
    static let deliveryBatch = SettingKey(
        "delivery.batch", .integer(in: 1...50_000), default: TransactionOptions().batch,
        help: "Jobs of one transaction; exactly-once only.")
    static let instance = SettingKey(
        "worker.instance", .string, default: "",
        help:
            "The worker's own name, such as its pod's: who starts under it takes over from who had it. Unless set, a random one."
    )
    static let staticMember = SettingKey(
        "worker.staticMember", .bool, default: false,
        help: "Whether a worker that has a name keeps its partitions while it is away, for session.timeout.ms.")

    /// All of them, in the order in which they are listed.
    static let guarantees: [any AnySettingKey] = [
        delivery, deliveryLinger, deliveryBatch, instance, staticMember,
    ]
}

extension Configuration {
    /// Sets what these keys say.
    func setGuarantee(_ options: inout WorkerOptions) {
        let instance = settings[Keys.instance].isEmpty ? nil : settings[Keys.instance]
        if settings[Keys.staticMember] { options.staticMember = instance }
        guard settings[Keys.delivery] == .exactlyOnce else { return }
        var transactions = TransactionOptions()
        transactions.linger = settings[Keys.deliveryLinger]
        transactions.batch = settings[Keys.deliveryBatch]
        transactions.instance = instance
        options.transactions = transactions
    }

    /// - Throws: ``ConfigurationError`` for settings that do not go together.
    func checkGuarantee() throws(ConfigurationError) {
        if settings[Keys.staticMember], settings[Keys.instance].isEmpty {
            throw ConfigurationError("worker.staticMember: a static member needs a name, worker.instance")
        }
    }
}
