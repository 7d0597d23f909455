import Concurrency
import Formats
import Redis
import Telemetry

/// Corrects the time of this process by the Redis clock, which all workers share, if the system clock is wrong.
///
/// Deadlines, the evaluation of dates sent by origins, and the times of events then agree on all workers.
public final class ClusterClock: Sendable {
    /// The interval between two comparisons of the clocks.
    private static let interval = Duration.seconds(30)

    private let redis: RedisClient
    private let log: Log
    private let errors: ToleratedErrors
    private let correction = Lock<Int64>(0)
    private let task = Lock<Task<Void, Never>?>(nil)

    /// Creates a clock that uses the given client. The caller owns the client and closes it after ``close()``.
    /// - Parameter errors: the counter of failed requests for the time of Redis.
    public init(_ redis: RedisClient, log: Log, errors: ToleratedErrors) {
        self.redis = redis
        self.log = log
        self.errors = errors
    }

    /// Sets the clock unless Redis is unavailable, and then repeats that periodically until ``close()``.
    public func set() async {
        await measure()
        let setting = Task {
            while !Task.isCancelled {
                await Task.sleepUnlessCancelled(for: Self.interval)
                await measure()
            }
        }
        task.withLock { $0 = setting }
    }

    /// Stops the periodic correction.
    public func close() async {
        let setting = task.withLock { $0 }
        setting?.cancel()
        await setting?.value
    }

    private func measure() async {
        let start = ContinuousClock.now
        let reply = await errors.tolerating { try await redis.run(Self.time, keys: ["halcyon:{clock}"]) }
        guard let parts = reply?.array, parts.count == 2,
            let seconds = parts[0].string.flatMap(Double.init), let micros = parts[1].string.flatMap(Double.init)
        else { return }
        let reading = ClockReading(
            server: Timestamp(seconds: seconds + micros / 1_000_000), system: .system,
            roundTrip: start.duration(to: .now))
        guard let new = reading.correction else { return }
        Timestamp.correct(by: new)
        let old = correction.withLock { correction in
            defer { correction = new }
            return correction
        }
        // A change of the difference was logged before.
        guard (new == 0) != (old == 0) else { return }
        if new == 0 {
            log.notice("system clock agrees with the Redis clock again")
        } else {
            log.warning(
                "system clock differs from the Redis clock; using the Redis clock",
                ["behind": Duration.milliseconds(new)])
        }
    }

    /// The script that reads the time. It has a key, so that a Redis Cluster can route it.
    private static let time = RedisScript("return redis.call('TIME')")
}

/// A server's reply to a request for its time.
struct ClockReading: Hashable, Sendable {
    /// The server's clock.
    let server: Timestamp
    /// The system clock when the reply arrived.
    let system: Timestamp
    /// The duration of the request. The server read its clock at some point within it.
    let roundTrip: Duration

    /// The difference that is not corrected. The cluster needs no better agreement, and most differences of this size
    /// are caused by the network.
    static let tolerance = Duration.seconds(1)

    /// Milliseconds by which the system clock is behind the server's; 0 within the tolerance. Nil if the request took
    /// longer than the tolerance, because such a reply is too inaccurate.
    var correction: Int64? {
        guard roundTrip <= Self.tolerance else { return nil }
        let behind = server.milliseconds - system.milliseconds + Int64(roundTrip / .milliseconds(2))
        return behind.magnitude <= UInt64(Self.tolerance / .milliseconds(1)) ? 0 : behind
    }
}
