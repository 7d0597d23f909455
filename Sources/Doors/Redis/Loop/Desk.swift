import Threads

/// What works on a loop for those who post letters to it.
protocol Service<Letter>: AnyObject, SendableMetatype {
    associatedtype Letter: Sendable
    /// Begins.
    func open()
    /// Does what was posted since the last time, in the order of posting.
    func take(_ letters: [Letter])
    /// Ends; letters come no more.
    func close()
}

/// A thread of a client's own, the service that lives there, and the mailbox through which tasks reach it.
actor Desk<Letter: Sendable> {
    private nonisolated let loop: EventLoop
    private nonisolated let mailbox = Mailbox<Letter>()
    private let service: any Service<Letter>

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Starts the thread, and opens there what `make` makes. ``close(_:)`` must be called in the end.
    init(thread name: String, _ make: (EventLoop) -> sending any Service<Letter>) {
        loop = EventLoop(name: name)
        service = make(loop)
        loop.perform { self.assumeIsolated { $0.service.open() } }
    }

    /// Posts a letter, from any thread. False when the desk is closed.
    @discardableResult
    nonisolated func post(_ letter: Letter) -> Bool {
        switch mailbox.post(letter) {
        case .first:
            loop.perform { self.assumeIsolated { $0.service.take($0.mailbox.take()) } }
            return true
        case .queued: return true
        case .closed: return false
        }
    }

    /// Closes the service and ends the thread; returns when it is gone. `refuse` is called with each letter that the service has
    /// not seen. A second call does nothing.
    nonisolated func close(_ refuse: (Letter) -> Void) async {
        mailbox.close().forEach(refuse)
        loop.perform { self.assumeIsolated { $0.service.close() } }
        await withCheckedContinuation { continuation in
            _ = WorkThread(name: "redis-stop", stackSize: 1 << 16) {
                self.loop.stop()
                continuation.resume()
            }
        }
    }
}
