import HalcyonModel
import HalcyonWorker
import Settings

/// How workers share work, and which jobs go first.
extension Keys {
    static let leaseDuration = SettingKey(
        "leases.duration", .duration(in: .milliseconds(500) ... .seconds(600)),
        default: Defaults.worker.leases.duration,
        help: "For how long nobody does the work of a worker that has died. It is prolonged three times in this time.")
    static let leasePatience = SettingKey(
        "leases.patience", .duration(in: .zero ... .seconds(600)), default: Defaults.worker.leases.patience,
        help: "For how long Redis may give no answer until workers no longer share what they make.")
    static let fetchesWithoutLeases = SettingKey(
        "worker.fetchesWithoutLeases", .integer(in: 1...10_000), default: Defaults.worker.fetchesWithoutLeases,
        help: "Results made at once while Redis is away, when each worker makes what it needs.")

    static let deaths = SettingKey(
        "poison.deaths", .integer(in: 2...100), default: Defaults.worker.leases.deaths.deaths,
        help: "Deaths of workers, and of the children that try it then, after which what they made is poison.")
    static let coincidences = SettingKey(
        "poison.coincidences", .integer(in: 2...1000), default: Defaults.worker.leases.deaths.coincidences,
        help: "Deaths of workers after which it is poison though nothing but their number speaks against it.")

    static let highShare = share(.high)
    static let normalShare = share(.normal)
    static let lowShare = share(.low)

    private static func share(_ lane: Lane) -> SettingKey<Int> {
        SettingKey(
            "lanes.\(lane.rawValue)", .integer(in: 1...1000), default: Defaults.worker.shares[lane] ?? 1,
            help: "Share of this lane in fetching and rendering while jobs of all lanes wait.")
    }

    /// All of them, in the order in which they are listed.
    static let sharing: [any AnySettingKey] = [
        leaseDuration, leasePatience, fetchesWithoutLeases, deaths, coincidences, highShare, normalShare, lowShare,
    ]
}

extension Configuration {
    /// Sets what these keys say.
    func setSharing(_ options: inout WorkerOptions) {
        options.leases.duration = settings[Keys.leaseDuration]
        options.leases.patience = settings[Keys.leasePatience]
        options.leases.deaths.deaths = settings[Keys.deaths]
        options.leases.deaths.coincidences = settings[Keys.coincidences]
        options.fetchesWithoutLeases = settings[Keys.fetchesWithoutLeases]
        options.shares = [
            .high: settings[Keys.highShare], .normal: settings[Keys.normalShare], .low: settings[Keys.lowShare],
        ]
    }
}
