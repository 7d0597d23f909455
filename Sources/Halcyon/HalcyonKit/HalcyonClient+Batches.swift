import Foundation

extension HalcyonClient {
    /// Submits jobs as a batch, whose end is reported by one event. The key needs the scope `submit`.
    ///
    /// The jobs are sent in one request, which the gateway limits (`gateway.maximumBatchJobs`). More jobs can be added
    /// to a batch that is not closed.
    /// - Parameters:
    ///   - jobs: The jobs, without ids or with ids of their own. Each counts once, by its index.
    ///   - id: The id of the batch; nil for a new one, so that the request can be repeated.
    ///   - firstIndex: The index of the first job in the batch; the number of jobs that it has already.
    ///   - closes: True if these are the last jobs. The batch is then complete when all of its jobs have ended.
    /// - Throws: `HalcyonError`, of the kind `conflict` if the batch is closed; `CancellationError`.
    @discardableResult
    public func submitBatch(
        _ jobs: [ImageJob], id: String? = nil, firstIndex: Int = 0, closes: Bool = true
    ) async throws -> BatchSubmission {
        var request = Request(method: "POST", path: ["batches"], fields: ["Content-Type": "application/x-ndjson"])
        request.query = [("id", id ?? Self.newID()), ("first", "\(firstIndex)"), ("close", "\(closes)")]
        request.body = try jobs.reduce(into: Data()) { $0 += try JSONEncoder().encode($1) + [10] }
        return try await response(to: request)
    }

    /// The state of a batch. The key needs the scope `read`.
    /// - Throws: `HalcyonError`, of the kind `notFound` for an unknown batch; `CancellationError`.
    public func batch(id: String) async throws -> Batch {
        try await response(to: Request(path: ["batches", id]))
    }

    /// Waits until all jobs of a batch have ended. The key needs the scope `read`.
    /// - Returns: The completed batch.
    /// - Throws: `HalcyonError`, of the kind `notFound` for an unknown batch; `CancellationError`.
    public func waitForBatch(id: String) async throws -> Batch {
        var backoff = Backoff(base: .milliseconds(100), maximum: .seconds(2))
        while true {
            let batch = try await batch(id: id)
            if batch.state == .completed { return batch }
            try await Task.sleep(for: backoff.next())
        }
    }

    /// The newest batches. The key needs the scope `read`.
    /// - Parameter limit: The maximum number of batches, at most 1000.
    /// - Throws: `HalcyonError`; `CancellationError`.
    public func batches(limit: Int = 100) async throws -> [Batch] {
        struct Page: Decodable { let batches: [Batch] }
        let page: Page = try await response(to: Request(path: ["batches"], query: [("limit", "\(limit)")]))
        return page.batches
    }

    /// The failed jobs of a batch, in the order of their ends. The key needs the scope `read`.
    /// - Parameters:
    ///   - id: The id of the batch.
    ///   - start: The number of failures to skip.
    ///   - limit: The maximum number of failures, at most 1000.
    /// - Throws: `HalcyonError`; `CancellationError`.
    public func batchFailures(id: String, start: Int = 0, limit: Int = 100) async throws -> [BatchFailure] {
        struct Page: Decodable { let failures: [BatchFailure] }
        let page: Page = try await response(
            to: Request(
                path: ["batches", id, "failures"], query: [("start", "\(start)"), ("limit", "\(limit)")]))
        return page.failures
    }

    /// Cancels all jobs of a batch that have not ended. The key needs the scope `submit`.
    /// - Throws: `HalcyonError`, of the kind `conflict` for a completed batch; `CancellationError`.
    public func cancelBatch(id: String) async throws {
        _ = try await transport.send(Request(method: "DELETE", path: ["batches", id]), completesWhenCancelled: true)
    }

    /// Submits the failed jobs of a completed batch as a new batch. The key needs the scope `submit`.
    /// - Parameters:
    ///   - id: The id of the completed batch.
    ///   - newID: The id of the new batch; nil for a new one.
    /// - Throws: `HalcyonError`, of the kind `conflict` if the batch is not complete or no job failed;
    ///   `CancellationError`.
    @discardableResult
    public func retryBatch(id: String, as newID: String? = nil) async throws -> BatchSubmission {
        var request = Request(
            method: "POST", path: ["batches", id, "retry"], query: [("id", newID ?? Self.newID())],
            fields: ["Content-Type": "application/json"])
        request.body = Data("{}".utf8)
        return try await response(to: request)
    }

    private func response<Value: Decodable>(to request: Request) async throws -> Value {
        try Self.decode(
            Value.self, try await transport.send(request, completesWhenCancelled: request.method != "GET"))
    }
}

/// The jobs of a batch that a gateway has accepted.
public struct BatchSubmission: Sendable, Hashable, Decodable {
    /// The id of the batch.
    public let id: String
    /// The number of jobs that were written to the brokers.
    public let accepted: Int
    /// The number of invalid jobs, which are not part of the batch.
    public let rejected: Int
    /// The number of failed jobs whose messages no longer exist, of a retry.
    public let missing: Int

    private enum CodingKeys: String, CodingKey { case id, accepted, rejected, missing }

    /// Decodes a gateway's response.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = try container.decode(String.self, forKey: .id)
        accepted = try container.decode(Int.self, forKey: .accepted)
        rejected = try container.decode(Int.self, forKey: .rejected)
        missing = try container.decodeIfPresent(Int.self, forKey: .missing) ?? 0
    }
}

/// The state of a batch.
public struct Batch: Sendable, Hashable, Decodable {
    /// The id of the batch.
    public let id: String
    /// The state.
    public let state: State
    /// The number of jobs; nil while jobs may be added.
    public let total: Int?
    /// The number of jobs that have ended.
    public let ended: Int
    /// The number of jobs that have ended, by outcome.
    public let counts: Counts
    /// The tenant of the request that created the batch.
    public let tenant: String?

    /// The number of jobs by outcome.
    public struct Counts: Sendable, Hashable, Decodable {
        /// The number of jobs.
        public let ready, failed, cancelled, superseded: Int
    }

    /// The state of a batch.
    public struct State: RawRepresentable, Sendable, Hashable, Codable {
        /// The name of the state.
        public let rawValue: String
        /// Creates a state that has no static member here.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Jobs may be added, or a worker submits them.
        public static let open = Self(rawValue: "open"), listing = Self(rawValue: "listing")
        /// All jobs were submitted, and some have not ended.
        public static let running = Self(rawValue: "running"), cancelling = Self(rawValue: "cancelling")
        /// All jobs have ended.
        public static let completed = Self(rawValue: "completed")
    }
}

/// A failed job of a batch.
public struct BatchFailure: Sendable, Hashable, Decodable {
    /// The id of the job.
    public let job: String
    /// The index of the job in the batch, if it has one.
    public let index: Int?
    /// The reason.
    public let code: FailureCode
    /// A description of the failure for people.
    public let message: String
}
