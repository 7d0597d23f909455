import HalcyonCluster

extension TakenRecord {
    /// Does something that must not hold up a partition that goes.
    /// - Throws: what `body` throws; `CancellationError` when the record is recalled first.
    func untilRecalled<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let task = Task { try await body() }
        onRecall { task.cancel() }
        return try await task.value
    }
}
