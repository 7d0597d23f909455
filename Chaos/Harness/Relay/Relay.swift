import Concurrency
import Glibc
import Subprocess

/// A TCP relay from a port of 127.0.0.1 to another one. It simulates a network that can be interrupted.
///
/// It runs on an event loop that others may share. Call ``close()`` before the loop is stopped.
public actor Relay {
    /// The condition of the network.
    public enum Condition: Sendable, CaseIterable {
        /// Data is delivered.
        case open
        /// No data is delivered and no connection is refused. Data that is sent meanwhile is delivered when the relay
        /// is open again.
        case silent
        /// Current and new connections are reset.
        case refusing
    }

    private nonisolated let loop: EventLoop
    /// The executor of the event loop.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// The port that the relay listens on.
    public nonisolated let port: UInt16
    private let target: UInt16
    private let listener: Int32
    private var condition = Condition.open
    private var pairs: [ObjectIdentifier: RelayedPair] = [:]
    /// The request key to wait for, and the waiter.
    private var awaited: (key: Int16, waiter: CheckedContinuation<Bool, Never>)?

    /// Starts a relay to a port.
    /// - Throws: ``RelayError`` if no port is available.
    public static func start(to target: UInt16, on loop: EventLoop) async throws(RelayError) -> Relay {
        let relay = try Relay(to: target, on: loop)
        await relay.listen()
        return relay
    }

    private init(to target: UInt16, on loop: EventLoop) throws(RelayError) {
        self.target = target
        self.loop = loop
        port = LoopbackPort.reserve()
        listener = socket(AF_INET, RelayedPair.socketKind, 0)
        let listener = listener
        var yes: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        let isBound = LoopbackAddress.with(port: port) { bind(listener, $0, $1) == 0 }
        guard isBound, Glibc.listen(listener, 128) == 0 else { throw RelayError(errno: errno) }
    }

    /// Changes the condition of the network.
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

    /// Becomes silent when a client sends a request with this key, before any of it is delivered. Only one caller at a
    /// time is supported.
    /// - Parameter key: The Kafka API key.
    /// - Returns: False if no such request was sent within `limit`.
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

    /// Closes all connections and stops listening.
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

/// The relay cannot listen on a port.
public struct RelayError: Error, CustomStringConvertible {
    /// The errno(3) value.
    public let errno: Int32
    /// A message for error output.
    public var description: String { "relay cannot listen on a port: \(String(cString: strerror(errno)))" }
}
