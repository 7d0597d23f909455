import Concurrency

/// The options by which tenants share the capacity of the workers.
public struct TenantOptions: Sendable {
    /// The weights of tenants, above 0. Those that are missing have the weight 1.
    public var weights: [String: Double] = [:]

    /// Creates options with equal weights.
    public init() {}

    /// Returns the flow of a tenant; nil for jobs without a tenant, which share one flow.
    func flow(of tenant: String?) -> Flow { Flow(tenant, weight: tenant.flatMap { weights[$0] } ?? 1) }
}
