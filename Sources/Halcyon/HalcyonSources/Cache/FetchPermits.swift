import Curl
import Threads

/// Permits for sources that are being fetched or in memory, each for so many bytes. A larger source takes several; one
/// whose size is not known yet as many as sources have taken lately.
struct FetchPermits: Sendable {
    private let semaphore: Slots
    private let bytesPerPermit: Int
    /// A moving average of sizes in bytes, in which larger ones count for more.
    private let typical: Lock<Double>

    /// - Parameter first: bytes expected of the first source.
    init(_ semaphore: Slots, bytesPerPermit: Int, first: Int) {
        self.semaphore = semaphore
        self.bytesPerPermit = bytesPerPermit
        typical = Lock(Double(first))
    }

    /// Waits for a permit, and for as many more as sources have taken lately.
    /// - Throws: `CancellationError`.
    func acquire(_ urgency: Urgency) async throws -> Place {
        let permit = Place(of: semaphore)
        try await permit.acquire(urgency)
        try await permit.grow(more: extra(for: Int(typical.withLock { $0 })))
        return permit
    }

    /// Sets a permit to the size that its source turned out to have.
    func settle(_ permit: Place, bytes: Int) {
        permit.take(more: extra(for: bytes))
        typical.withLock { typical in
            let change = Double(bytes) - typical
            typical += change / (change > 0 ? 2 : 8)
        }
    }

    /// Performs a fetch whose transfers pause while they need more memory than the permit stands for and no more is
    /// free.
    func limitingMemory<Value>(of permit: Place, _ body: () async throws -> Value) async throws -> Value {
        let memory = SourceMemory { begun in
            HTTPAdmission(bytes: max(0, bytes(of: permit) - begun)) { needed in
                try await permit.grow(more: extra(for: begun + needed))
                return bytes(of: permit) - begun
            }
        }
        return try await SourceMemory.$current.withValue(memory, operation: body)
    }

    /// Permits beside the first that a source of so many bytes takes.
    private func extra(for bytes: Int) -> Int { max(0, bytes - 1) / bytesPerPermit }

    private func bytes(of permit: Place) -> Int {
        let (product, overflow) = permit.places.multipliedReportingOverflow(by: bytesPerPermit)
        return overflow ? .max : product
    }
}

/// The memory that the transfers of a fetch may take.
///
/// It is a task-local value, as ``LoadMeter`` is, so that it reaches them without a parameter in every provider.
struct SourceMemory: Sendable {
    /// The memory of the fetch that the current task performs.
    @TaskLocal static var current: SourceMemory?

    /// For one request of the fetch; the argument is the number of bytes received earlier, if the request is for the
    /// rest.
    let admission: @Sendable (_ begun: Int) -> HTTPAdmission
}
