/// Delays all data between the workers and the result store, as a store with too much to do does.
struct StoreSlow: Fault {
    let kind = FaultKind.storeSlow
    /// The longest time for which data is held back.
    let delay: Duration
    let length: Duration
    var what: String { "by up to \(seconds(delay / .seconds(1))) at a time" }
    let victims: Set<Victim> = [.store]
    let disturbances = 0

    /// The time for which data is delivered, between two times for which it is not.
    private static let opening = Duration.milliseconds(20)
    private let alternation = Alternation()

    init(delay: Duration, length: Duration) {
        self.delay = delay
        self.length = length
    }

    func begin(_ environment: ChaosEnvironment) async {
        let relays = environment.seats.compactMap(\.store)
        await alternation.start { [delay] in
            for relay in relays { await relay.set(.silent) }
            try await Task.sleep(for: delay)
            for relay in relays { await relay.set(.open) }
            try await Task.sleep(for: Self.opening)
        }
    }

    func end(_ environment: ChaosEnvironment) async {
        await alternation.stop()
        for relay in environment.seats.compactMap(\.store) { await relay.set(.open) }
    }

    private actor Alternation {
        private var task: Task<Void, any Error>?

        func start(_ step: @escaping @Sendable () async throws -> Void) {
            task = Task { while !Task.isCancelled { try await step() } }
        }

        func stop() async {
            task?.cancel()
            _ = await task?.result
        }
    }
}

/// Makes the result store respond with 503.
struct StoreUnavailable: Fault {
    let kind = FaultKind.store503
    let length: Duration
    let what = ""
    let victims: Set<Victim> = [.store]
    let disturbances = 0

    func begin(_ environment: ChaosEnvironment) async { environment.store.server?.fail(with: .slowDown) }
    func end(_ environment: ChaosEnvironment) async { environment.store.server?.fail(with: nil) }
}

/// Leaves no space in the result store.
struct StoreFull: Fault {
    let kind = FaultKind.storeFull
    let length: Duration
    let what = ""
    let victims: Set<Victim> = [.store]
    let disturbances = 0

    func begin(_ environment: ChaosEnvironment) async throws { try await environment.store.fill() }
    func end(_ environment: ChaosEnvironment) async throws { try await environment.store.clear() }
}
