import Concurrency
import HalcyonCoordination
import Redis
import Telemetry
import TestSupport

/// A Redis with several processes' leases at it.
final class LeaseFixture: Sendable {
    private let url: String
    /// The server; of several the first.
    let server: RedisServer
    let redis: RedisClient
    let product: String
    private let closing = Lock<[@Sendable () async -> Void]>([])

    init(_ url: String, _ server: RedisServer) async throws {
        (self.url, self.server) = (url, server)
        redis = RedisClient(try RedisEndpoint(url))
        product = "halcyon:{\(UInt64.random(in: .min ... .max))}:picture"
    }

    /// Runs `body` on servers of its own, and takes them down.
    static func with<Outcome>(
        _ kind: RedisDeployment.Kind = .server, _ arguments: [String] = [],
        _ body: (LeaseFixture) async throws -> Outcome
    ) async throws -> Outcome {
        let deployment = try await RedisDeployment.start(kind, arguments)
        let fixture = try await LeaseFixture(deployment.url, deployment.servers[0])
        let result: Result<Outcome, any Error>
        do {
            result = .success(try await body(fixture))
        } catch {
            result = .failure(error)
        }
        await fixture.close()
        await deployment.stop()
        return try result.get()
    }

    var name: LeaseName { LeaseName(product: product) }

    /// Leases that do not run out while a busy machine does something else.
    static let patient = {
        var options = LeaseOptions()
        (options.duration, options.fallbackTimeout) = (.seconds(600), .seconds(60))
        return options
    }()

    /// A process of its own.
    func process(_ options: LeaseOptions = patient) throws -> Leases {
        let redis = RedisClient(try RedisEndpoint(url))
        let subscriber = RedisSubscriber(try RedisEndpoint(url))
        let leases = Leases(redis, subscriber, options, log: .silent, metrics: Metrics())
        closing.withLock {
            $0.append {
                await leases.close()
                await redis.close()
                await subscriber.close()
            }
        }
        return leases
    }

    func close() async {
        for body in closing.withLock({ $0 }) { await body() }
        await redis.close()
    }
}

/// A lease that was to be had was not.
struct NotGiven: Error, CustomStringConvertible {
    let description: String
}

extension AcquireResult {
    /// The lease that it gives.
    /// - Throws: what it says instead.
    func given() throws -> Lease {
        guard case .acquired(let lease) = self else { throw NotGiven(description: "not given: \(self)") }
        return lease
    }
}
