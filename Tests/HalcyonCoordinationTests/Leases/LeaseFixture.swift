import Concurrency
import HalcyonCoordination
import Redis
import Telemetry
import TestSupport

/// A Redis deployment and the leases of several processes.
final class LeaseFixture: Sendable {
    private let url: String
    /// The server, or the first of several.
    let server: RedisServer
    let redis: RedisClient
    let product: String
    private let closing = Lock<[@Sendable () async -> Void]>([])

    init(_ url: String, _ server: RedisServer) async throws {
        (self.url, self.server) = (url, server)
        redis = RedisClient(try RedisEndpoint(url), settings: .patient())
        product = "halcyon:{\(UInt64.random(in: .min ... .max))}:picture"
    }

    /// Runs `body` with a deployment of its own, and stops it.
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

    /// Options with a lease duration of ten minutes, for busy machines.
    static let patient = {
        var options = LeaseOptions()
        (options.duration, options.fallbackTimeout) = (.seconds(600), .seconds(60))
        return options
    }()

    /// Returns the leases of a new process.
    /// - Parameter redis: The client of the process, which is closed with it; nil for a new one.
    func process(_ options: LeaseOptions = patient, over redis: RedisClient? = nil) throws -> Leases {
        let redis = try redis ?? RedisClient(RedisEndpoint(url))
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

    /// Waits until this many processes receive notifications. Those that are published before are lost.
    func waitForSubscriptions(_ count: Int) async throws {
        try await until("\(count) processes are subscribed") {
            try await redis.send(["PUBSUB", "CHANNELS", "halcyon:process:*"]).array?.count == count
        }
    }

    func close() async {
        for body in closing.withLock({ $0 }) { await body() }
        await redis.close()
    }
}

/// The error for a lease that was not acquired.
struct LeaseNotAcquired: Error, CustomStringConvertible {
    let description: String
}

extension AcquireResult {
    /// Returns the acquired lease.
    /// - Throws: ``LeaseNotAcquired`` for other results.
    func acquiredLease() throws -> Lease {
        guard case .acquired(let lease) = self else { throw LeaseNotAcquired(description: "not acquired: \(self)") }
        return lease
    }
}
