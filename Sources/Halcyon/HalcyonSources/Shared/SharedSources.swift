import HalcyonModel

/// Sources that many jobs have in common, such as watermarks: each is loaded once however many ask for it at the same time,
/// and kept in memory for as long as it is fresh.
public actor SharedSources {
    /// A load under way, and who waits for it.
    private struct Flight {
        let number: UInt64
        let task: Task<Void, Never>
        var waiters: [UInt64: CheckedContinuation<LoadedSource, any Error>] = [:]
    }

    private let loadOne: @Sendable (Source) async throws -> LoadedSource
    private let defaultLifetime: Double
    private var kept: KeptSources
    private var flights: [String: Flight] = [:]
    private var numbers: UInt64 = 0

    /// - Parameters:
    ///   - loadOne: loads a source.
    ///   - maximumBytes: of all kept sources together.
    ///   - defaultLifetime: seconds for which a source is fresh about which its origin said nothing.
    public init(
        maximumBytes: Int, defaultLifetime: Double, _ loadOne: @escaping @Sendable (Source) async throws -> LoadedSource
    ) {
        self.loadOne = loadOne
        self.defaultLifetime = defaultLifetime
        kept = KeptSources(capacity: maximumBytes)
    }

    /// The source, from memory or from where it is being loaded.
    ///
    /// Freshness is the result tier's: Cache-Control's max-age, else Expires, else the default; what must not be stored is not
    /// kept, and is shared only by those who ask while it is on its way. A failure is told to all who wait and not kept.
    ///
    /// - Throws: ``Failure``; `CancellationError` when the task is cancelled, which leaves other waiters alone and, when it
    ///   was the last one, ends the load.
    public func load(_ source: Source) async throws -> LoadedSource {
        let name = source.cacheKey
        if let found = kept.source(name, at: .now) { return found }
        numbers += 1
        let number = numbers
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // Nobody would take it out again.
                if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
                if flights[name] == nil { flights[name] = flight(for: source, number) }
                flights[name]?.waiters[number] = continuation
            }
        } onCancel: {
            Task { await self.leave(name, number) }
        }
    }

    /// The bytes of all of these.
    /// - Throws: as ``load(_:)``, for the first that fails; the message names it.
    public nonisolated func load(all sources: Set<Source>) async throws -> [Source: [UInt8]] {
        try await withThrowingTaskGroup(of: (Source, [UInt8]).self) { group in
            for source in sources {
                group.addTask {
                    do {
                        return (source, try await self.load(source).body)
                    } catch let failure as Failure {
                        throw failure.within("the asset \(source.text)")
                    }
                }
            }
            var bodies: [Source: [UInt8]] = [:]
            for try await (source, body) in group { bodies[source] = body }
            return bodies
        }
    }

    private func flight(for source: Source, _ number: UInt64) -> Flight {
        Flight(
            number: number,
            task: Task { [loadOne] in
                let result: Result<LoadedSource, any Error>
                do { result = .success(try await loadOne(source)) } catch { result = .failure(error) }
                land(source.cacheKey, number, result)
            })
    }

    private func land(_ name: String, _ number: UInt64, _ result: Result<LoadedSource, any Error>) {
        // Another may be under way in place of one that was given up.
        guard flights[name]?.number == number, let flight = flights.removeValue(forKey: name) else { return }
        if case .success(let source) = result, let seconds = lifetime(of: source) {
            kept.keep(source, as: name, until: .now + .seconds(seconds))
        }
        for waiter in flight.waiters.values { waiter.resume(with: result) }
    }

    private func lifetime(of source: LoadedSource) -> Double? {
        switch ResultLifetime(maxAge: 0, headers: source.headers, completedAt: source.completedAt) {
        case .seconds(let seconds): seconds
        case .standard: defaultLifetime
        case .notStored: nil
        }
    }

    private func leave(_ name: String, _ number: UInt64) {
        guard let waiter = flights[name]?.waiters.removeValue(forKey: number) else { return }
        if flights[name]?.waiters.isEmpty == true { flights.removeValue(forKey: name)?.task.cancel() }
        waiter.resume(throwing: CancellationError())
    }

    /// How many loads are under way.
    var loading: Int { flights.count }
    /// How many wait for a source.
    func waiters(for source: Source) -> Int { flights[source.cacheKey]?.waiters.count ?? 0 }
}
