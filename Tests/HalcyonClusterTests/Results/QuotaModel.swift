import HalcyonCluster
import HalcyonCoordination
import HalcyonModel

/// A reference model of the quota of a tenant, without Redis.
struct QuotaModel {
    struct Entry: Equatable {
        var bytes: Int
        var pixels: Int
    }

    let budget: Budget
    private(set) var entries: [String: Entry] = [:]
    /// The keys from the least to the most recently used one.
    private var order: [String] = []

    init(_ budget: Budget) { self.budget = budget }

    var keys: [String] { order }
    var bytes: Int { entries.values.reduce(0) { $0 + $1.bytes } }
    var pixels: Int { entries.values.reduce(0) { $0 + $1.pixels } }

    mutating func store(_ key: String, _ entry: Entry) {
        remove(key)
        entries[key] = entry
        order.append(key)
        trim(to: budget)
    }

    mutating func use(_ key: String) {
        guard entries[key] != nil else { return }
        order.removeAll { $0 == key }
        order.append(key)
    }

    mutating func remove(_ key: String) {
        entries[key] = nil
        order.removeAll { $0 == key }
    }

    mutating func trim(to budget: Budget) {
        while bytes > budget.bytes ?? .max || pixels > budget.pixels ?? .max || entries.count > budget.count ?? .max,
            let oldest = order.first
        {
            remove(oldest)
        }
    }
}
