import HalcyonCluster
import HalcyonModel
import HalcyonWorker
import Settings

/// When jobs that failed are tried again.
extension Keys {
    static let retryAttempts = SettingKey(
        "retry.attempts", .integer(in: 1...100), default: Defaults.worker.retries.attempts,
        help: "How often a job is tried in all when it fails in a way that may pass; 1 for once and not again.")
    static let retryBase = SettingKey(
        "retry.base", .duration(in: .milliseconds(1) ... .seconds(60)),
        default: .seconds(Defaults.worker.retries.base),
        help:
            "Up to how long it waits before the second attempt; it doubles with each. Waits are drawn at random from 0."
    )
    static let retryInProcess = SettingKey(
        "retry.inProcess", .duration(in: .zero ... .seconds(60)), default: .seconds(Defaults.worker.retries.inProcess),
        help: "The longest wait that the worker itself waits; what takes longer goes through a topic of retries.")
    static let retryBudget = SettingKey(
        "retry.budget", .duration(in: .zero ... .seconds(86_400)), default: .seconds(Defaults.worker.retries.budget),
        help: "For how long after its first attempt a job is tried again.")
    static let retryDelays = SettingKey(
        "retry.delays", .list(of: .duration(in: .milliseconds(10) ... .seconds(3600))),
        default: Topics().retryDelays,
        help:
            "The longest waits in the topics of retries, which are named after them (retry.10s); the same for all workers. A topic that is left out is read no more."
    )

    /// All of them, in the order in which they are listed.
    static let retrying: [any AnySettingKey] = [
        retryAttempts, retryBase, retryInProcess, retryBudget, retryDelays,
    ]
}

extension Configuration {
    /// - Throws: ``ConfigurationError`` for waits that do not rise.
    static func checkRetries(_ settings: Settings) throws {
        for key in [Keys.retryDelays, Keys.webhookDelays] {
            let delays = settings[key]
            guard zip(delays, delays.dropFirst()).allSatisfy({ $0 < $1 }) else {
                throw ConfigurationError("\(key.name): expected waits that rise, such as 10s,1m,10m")
            }
        }
        guard !settings[Keys.webhookDelays].isEmpty else {
            throw ConfigurationError("webhooks.delays: expected one wait at least")
        }
    }

    var retries: RetryPolicy {
        var policy = RetryPolicy()
        policy.attempts = settings[Keys.retryAttempts]
        policy.base = settings[Keys.retryBase] / .seconds(1)
        policy.inProcess = settings[Keys.retryInProcess] / .seconds(1)
        policy.budget = settings[Keys.retryBudget] / .seconds(1)
        return policy
    }
}
