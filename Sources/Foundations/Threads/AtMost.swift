/// Waits for `work`, but no longer than `limit`: what is left of it then goes on in the background.
public func atMost(_ limit: Duration, _ work: @escaping @Sendable () async -> Void) async {
    let isOver = Lock(false)
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
        @Sendable func end() {
            let isFirst = isOver.withLock { isOver in
                defer { isOver = true }
                return !isOver
            }
            if isFirst { continuation.resume() }
        }
        let timer = Task {
            try await Task.sleep(for: limit)
            end()
        }
        Task {
            await work()
            timer.cancel()
            end()
        }
    }
}
