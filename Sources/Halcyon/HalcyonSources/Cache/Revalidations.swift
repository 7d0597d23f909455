/// Sources that are loaded anew while their old bytes are in use: each once at a time.
actor Revalidations {
    private var tasks: [String: Task<Void, Never>] = [:]
    private var isClosed = false

    /// Begins the work in the background, unless it is under way.
    func run(_ key: String, _ work: @escaping @Sendable () async -> Void) {
        guard !isClosed, tasks[key] == nil else { return }
        tasks[key] = Task {
            await work()
            tasks[key] = nil
        }
    }

    /// Cancels what is under way, and waits for it.
    func close() async {
        isClosed = true
        for task in tasks.values { task.cancel() }
        for task in tasks.values { await task.value }
    }
}
