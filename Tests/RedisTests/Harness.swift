import Concurrency
import Redis
import TestSupport
import Testing

/// Runs `body` with a private server and a client of it, and stops both.
func withRedis(
    _ arguments: [String] = [], settings: RedisSettings = .patient(),
    onStateChange: @escaping @Sendable (RedisState) -> Void = { _ in },
    _ body: (RedisServer, RedisClient) async throws -> Void
) async throws {
    let server = try await RedisServer.start(arguments)
    let client = RedisClient(
        RedisEndpoint(loopbackPort: server.port), settings: settings, onStateChange: onStateChange)
    let result: Result<Void, any Error>
    do { result = .success(try await body(server, client)) } catch { result = .failure(error) }
    await client.close()
    await server.stop()
    try result.get()
}

extension RedisClient {
    /// Sends a command, again after each error that a retry may fix, for clients with ``shortTimeouts``.
    /// - Throws: ``RedisError``, `CancellationError`.
    func reply(to command: RedisArgument...) async throws -> RedisValue {
        let end = ContinuousClock.now + .patience
        while true {
            do throws(RedisError) {
                return try await send(command)
            } catch {
                guard error.isRetriable, ContinuousClock.now < end else { throw error }
            }
            try await Task.sleep(for: .milliseconds(10))
        }
    }
}

/// Expects `body` to fail with `code`.
func expectFailure<Value>(
    _ code: RedisError.Code, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () async throws -> Value
) async {
    do {
        let value = try await body()
        Issue.record("\(value) instead of \(code)", sourceLocation: sourceLocation)
    } catch {
        #expect((error as? RedisError)?.code == code, "\(error)", sourceLocation: sourceLocation)
    }
}

/// Returns the error of the first attempt to connect, which the server refuses, and expects commands to fail. The
/// connection timeout must be long, so that it does not hide the error on a busy machine.
func refusal(by endpoint: RedisEndpoint, settings: RedisSettings = quickReconnects) async throws -> RedisError {
    let log = StateLog()
    let client = RedisClient(endpoint, settings: settings, onStateChange: log.record)
    let first: Result<RedisState, any Error>
    do {
        first = .success(try await firstValue("the refusal is reported") { log.states.first })
    } catch {
        first = .failure(error)
    }
    await client.close()
    guard case .lost(let error) = try first.get() else { throw RedisError(.protocolError, "\(log.states)") }
    // A command waits for the connection timeout and the grace period.
    var hasty = settings
    (hasty.connectTimeout, hasty.outageGrace) = (.milliseconds(300), .milliseconds(100))
    let other = RedisClient(endpoint, settings: hasty)
    await expectFailure(.unavailable) { try await other.send("PING") }
    await other.close()
    return error
}

/// The state changes of a client, in order.
final class StateLog: Sendable {
    private let log = Lock<[RedisState]>([])
    var states: [RedisState] { log.withLock { $0 } }
    /// True if each loss and each recovery was reported once. With ``shortTimeouts``, the first attempt to connect may
    /// fail.
    var isAlternating: Bool {
        let states = states
        return zip(states, states.dropFirst()).allSatisfy { ($0 == .connected) != ($1 == .connected) }
    }
    /// True if the connection is lost.
    var isLost: Bool { if case .lost? = states.last { true } else { false } }
    @Sendable func record(_ state: RedisState) { log.withLock { $0.append(state) } }
}

/// Settings for tests of servers that end, which notice that quickly and do not take a busy machine for it.
var quickReconnects: RedisSettings {
    var settings = RedisSettings.patient(outageGrace: .seconds(2))
    settings.reconnectDelay = .milliseconds(10)...(.milliseconds(50))
    settings.idlePing = .milliseconds(200)
    return settings
}

/// Settings for tests of connections that are refused. The first command waits for the connection timeout and the grace
/// period.
var refusedConnections: RedisSettings {
    var settings = quickReconnects
    settings.connectTimeout = .seconds(5)
    return settings
}

/// Settings for tests of servers that fall silent. On a busy machine any server may be silent for longer.
var shortTimeouts: RedisSettings {
    var settings = quickReconnects
    settings.commandTimeout = .seconds(1)
    settings.connectTimeout = .seconds(1)
    return settings
}
