import Glibc
import Processes
import Threads

/// A way from a port of 127.0.0.1 to another one, which can be cut: the network between two processes.
///
/// It lives on an event loop, which others may share; ``close()`` it before the loop is stopped.
public actor Relay {
    /// What happens to what is sent.
    public enum Condition: Sendable, CaseIterable {
        /// It arrives.
        case open
        /// Nothing arrives and nothing is refused: whoever connects hears nothing. When it is open again, what was sent
        /// meanwhile arrives late.
        case silent
        /// Connections are reset, those that stand and those that come.
        case refusing
    }

    private nonisolated let loop: EventLoop
    /// The loop.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// The port that is connected to.
    public nonisolated let port: UInt16
    private let target: UInt16
    private let listener: Int32
    private var condition = Condition.open
    private var pairs: [ObjectIdentifier: RelayedPair] = [:]
    /// What is waited for, and by whom.
    private var awaited: (key: Int16, waiter: CheckedContinuation<Bool, Never>)?

    /// Opens a way to a port.
    /// - Throws: ``RelayError`` when no port can be had.
    public static func start(to target: UInt16, on loop: EventLoop) async throws(RelayError) -> Relay {
        let relay = try Relay(to: target, on: loop)
        await relay.listen()
        return relay
    }

    private init(to target: UInt16, on loop: EventLoop) throws(RelayError) {
        self.target = target
        self.loop = loop
        port = LoopbackPort.free()
        listener = socket(AF_INET, RelayedPair.socketKind, 0)
        let listener = listener
        let isBound = LoopbackAddress.with(port: port) { bind(listener, $0, $1) == 0 }
        guard isBound, Glibc.listen(listener, 128) == 0 else { throw RelayError(errno: errno) }
    }

    /// Changes what happens from now on.
    public func set(_ condition: Condition) {
        self.condition = condition
        switch condition {
        case .open:
            listen()
            for pair in pairs.values { move(pair) }
        case .silent:
            loop.unwatch(listener)
            for pair in pairs.values { ignore(pair) }
        case .refusing:
            listen()
            for pair in pairs.values { drop(pair) }
        }
    }

    /// Goes silent as somebody asks the broker for something of this kind, before any of that has arrived. One caller at a time.
    /// - Parameter key: Kafka's api key.
    /// - Returns: false when nobody has asked for it within `limit`.
    @discardableResult
    public func becomeSilent(before key: Int16, within limit: Duration) async -> Bool {
        let end = Task {
            try await Task.sleep(for: limit)
            self.stopAwaiting(false)
        }
        defer { end.cancel() }
        return await withCheckedContinuation { awaited = (key, $0) }
    }

    private func stopAwaiting(_ hasCome: Bool) {
        awaited.take()?.waiter.resume(returning: hasCome)
    }

    /// Ends all connections, and listens no more.
    public func close() {
        stopAwaiting(false)
        for pair in pairs.values { drop(pair) }
        loop.unwatch(listener)
        Glibc.close(listener)
    }

    private func listen() {
        loop.watch(listener, for: .readable) { _ in self.assumeIsolated { $0.accept() } }
    }

    private func accept() {
        while case let client = Glibc.accept(listener, nil, nil), client >= 0 {
            guard condition == .open, let pair = RelayedPair(client: client, to: target) else {
                RelayedPair.reset(client)
                continue
            }
            pairs[ObjectIdentifier(pair)] = pair
            move(pair)
        }
    }

    // MARK: One connection

    private func move(_ pair: RelayedPair) {
        switch pair.move(upTo: awaited?.key) {
        case .goesOn:
            watch(pair, pair.client)
            watch(pair, pair.server)
        case .isHeld:
            set(.silent)
            stopAwaiting(true)
        case .isOver: drop(pair)
        }
    }

    private func watch(_ pair: RelayedPair, _ descriptor: Int32) {
        let id = ObjectIdentifier(pair)
        loop.watch(descriptor, for: pair.interest(in: descriptor)) { readiness in
            self.assumeIsolated { relay in
                guard let pair = relay.pairs[id] else { return }
                if readiness.contains(.failed) { relay.drop(pair) } else { relay.move(pair) }
            }
        }
    }

    private func ignore(_ pair: RelayedPair) {
        loop.unwatch(pair.client)
        loop.unwatch(pair.server)
    }

    private func drop(_ pair: RelayedPair) {
        guard pairs.removeValue(forKey: ObjectIdentifier(pair)) != nil else { return }
        ignore(pair)
        pair.end()
    }
}

/// There is no port to listen on.
public struct RelayError: Error, CustomStringConvertible {
    /// The system's reason.
    public let errno: Int32
    /// For messages.
    public var description: String { "a relay cannot listen: \(String(cString: strerror(errno)))" }
}
