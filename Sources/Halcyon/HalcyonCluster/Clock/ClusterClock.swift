import Formats
import Redis
import Telemetry
import Threads

/// Has this process go by Redis' clock, which all workers have in common, where its machine's own is wrong: deadlines, the dates of origins,
/// and the times of events are then the same on all workers.
public final class ClusterClock: Sendable {
    /// So often it is looked whether the clocks still agree.
    private static let interval = Duration.seconds(30)

    private let redis: RedisClient
    private let log: Log
    private let errors: ToleratedErrors
    private let correction = Lock<Int64>(0)
    private let task = Lock<Task<Void, Never>?>(nil)

    /// The client stays its maker's, who closes it after ``close()``.
    /// - Parameter errors: those of asking Redis for the time.
    public init(_ redis: RedisClient, log: Log, errors: ToleratedErrors) {
        self.redis = redis
        self.log = log
        self.errors = errors
    }

    /// Sets the clock, unless Redis is away, and then again and again until ``close()``.
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

    /// Sets it no more.
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
        // What is off by a little more or less than before was told of already.
        guard (new == 0) != (old == 0) else { return }
        if new == 0 {
            log.notice("this machine's clock agrees with Redis' again")
        } else {
            log.warning(
                "this machine's clock is wrong, or Redis' is; going by Redis'",
                ["behind": Duration.milliseconds(new)])
        }
    }

    /// With a key, so that a cluster has somebody to ask.
    private static let time = RedisScript("return redis.call('TIME')")
}

/// What a server answered that was asked for the time.
struct ClockReading: Hashable, Sendable {
    /// The server's clock.
    let server: Timestamp
    /// The system's clock when the answer came.
    let system: Timestamp
    /// How long asking took: somewhere in this time the server looked at its clock.
    let roundTrip: Duration

    /// Clocks that are no further apart are left alone: nothing in a cluster needs them nearer, and most differences of this size are the
    /// way's and not the clocks'.
    static let tolerance = Duration.seconds(1)

    /// Milliseconds by which the system's clock is behind the server's; 0 within the tolerance. Nil when asking took longer than that: such an
    /// answer says too little.
    var correction: Int64? {
        guard roundTrip <= Self.tolerance else { return nil }
        let behind = server.milliseconds - system.milliseconds + Int64(roundTrip / .milliseconds(2))
        return behind.magnitude <= UInt64(Self.tolerance / .milliseconds(1)) ? 0 : behind
    }
}
