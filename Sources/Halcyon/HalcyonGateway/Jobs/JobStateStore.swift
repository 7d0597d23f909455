import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import Redis
import Telemetry

/// The states of jobs submitted by `POST /v1/jobs`, stored in Redis under `halcyon:job:ID` with a TTL. All gateways can
/// read them.
///
/// The name of the API key that submitted the job is stored under `halcyon:job-key:ID`, so that no other key can cancel
/// the job or reuse its id.
///
/// Jobs submitted in other ways have no state here, because it is rarely requested. A gateway stores the state
/// `accepted`. The consumer group of the gateways follows the committed events and updates the states that exist.
struct JobStateStore: Sendable {
    let redis: RedisClient
    /// Seconds for which the state of a job is stored after its last event.
    let lifetime: Double
    let log: Log

    /// The size of an event above which it contains an image that is not stored elsewhere. Its state has a shorter TTL,
    /// the same as that of images which workers store because they do not fit into an event.
    private static let mostBytes = 64 << 10
    private static let imageLifetime = 300.0

    /// The state that an id had before a job was submitted with it.
    enum EarlierState: Sendable {
        /// There was none, and the submission has stored `accepted`.
        case absent
        /// The state of a job that was submitted before. It is kept until the new job is published.
        case stored([UInt8])
        /// Redis was down.
        case unknown
    }

    /// Stores that a job is accepted, before it is published, unless its id has a state. If Redis is down, the job is
    /// published anyway and its state remains unknown.
    func note(accepted id: String) async -> EarlierState {
        let key = Self.key(of: id)
        do throws(RedisError) {
            let made = try await redis.send(["SET", key, .bytes(Self.accepted(id)), "PX", milliseconds, "NX"])
            if !made.isNull { return .absent }
            // The state may expire in between.
            return .stored(try await redis.send(["GET", key]).bytes ?? [])
        } catch {
            log.debug("failed to store the state of a job", ["error": "\(error)"])
            return .unknown
        }
    }

    /// Stores that a job was published whose id had a state before.
    func confirm(_ id: String, after earlier: EarlierState) async {
        guard case .stored(let state) = earlier else { return }
        // The space distinguishes it from the state of another submission, which may still fail and be withdrawn.
        await replace(state, of: id, with: Self.accepted(id) + [UInt8(ascii: " ")])
    }

    /// Deletes the state of a job that was not published, if the submission has stored it.
    func withdraw(_ id: String, after earlier: EarlierState) async {
        guard case .absent = earlier else { return }
        await replace(Self.accepted(id), of: id, with: [])
    }

    private static func accepted(_ id: String) -> [UInt8] {
        var writer = JSONWriter(capacity: 128)
        writer.object { writer in
            writer.member("id", id)
            writer.member("state", "accepted")
        }
        return writer.bytes
    }

    /// Replaces or deletes a state, unless an event or another submission has changed it. KEYS: the state. ARGV: the
    /// expected state, the new one (empty to delete it), and its TTL in milliseconds.
    private static let replacement = RedisScript(
        """
        local state = redis.call('GET', KEYS[1])
        if state and state ~= ARGV[1] then return 0 end
        if ARGV[2] == '' then return redis.call('DEL', KEYS[1]) end
        redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
        return 1
        """)

    private func replace(_ expected: [UInt8], of id: String, with state: [UInt8]) async {
        do throws(RedisError) {
            _ = try await redis.run(
                Self.replacement, keys: [Self.key(of: id)],
                arguments: [.bytes(expected), .bytes(state), milliseconds])
        } catch {
            log.debug("failed to change the state of a job", ["error": "\(error)"])
        }
    }

    /// Reserves an id for a key for as long as the state of its job is stored. Does nothing if Redis is down.
    /// - Throws: ``Problem`` if the id belongs to another key, or the task is cancelled.
    func claim(_ id: String, for name: String) async throws(Problem) {
        let key = Self.ownerKey(of: id)
        let owner: [UInt8]?
        do throws(RedisError) {
            let taken = try await redis.send(["SET", key, .string(name), "PX", milliseconds, "NX"])
            owner = taken.isNull ? try await redis.send(["GET", key]).bytes : nil
        } catch {
            guard error.code != .cancelled else { throw Problem(.unavailable, "the request was cancelled") }
            log.debug("failed to store the owner of a job", ["error": "\(error)"])
            return
        }
        guard let owner else { return }
        guard owner == Array(name.utf8) else {
            throw Problem(.conflict, "another key has submitted a job with this id; use a different id")
        }
        await send(["PEXPIRE", key, milliseconds])
    }

    /// True if a job is known to have been submitted with the key of this name.
    /// - Throws: ``Problem`` if Redis is unavailable.
    func isOwned(_ id: String, by name: String) async throws(Problem) -> Bool {
        do throws(RedisError) {
            return try await redis.send(["GET", Self.ownerKey(of: id)]).bytes == Array(name.utf8)
        } catch {
            throw Problem(.unavailable, "the owner of the job cannot be read at the moment; try again", retryAfter: 2)
        }
    }

    /// Returns the state of a job as JSON with its `id` and `state`; nil if it is unknown.
    /// - Throws: ``Problem`` if Redis is unavailable.
    func state(of id: String) async throws(Problem) -> [UInt8]? {
        do throws(RedisError) {
            return try await redis.send(["GET", Self.key(of: id)]).bytes
        } catch {
            throw Problem(.unavailable, "job states cannot be read at the moment; try again", retryAfter: 2)
        }
    }

    private func send(_ command: [RedisArgument]) async {
        do throws(RedisError) {
            _ = try await redis.send(command)
        } catch {
            log.debug("failed to store the state of a job", ["error": "\(error)"])
        }
    }

    private var milliseconds: RedisArgument { .integer(Int(lifetime * 1000)) }

    private static func key(of id: String) -> RedisArgument { .string("halcyon:job:\(id)") }
    private static func ownerKey(of id: String) -> RedisArgument { .string("halcyon:job-key:\(id)") }

    // MARK: Events

    /// Returns the commands that store an event if the state of its job exists. Progress is not stored: the state
    /// remains `started`, and a late event of a suspended worker must not replace the terminal event of another one.
    func commands(for record: ConsumedRecord) -> [[RedisArgument]] {
        guard let json = record.value, let event = DecodedEvent(json: json) else { return [] }
        return commands(for: event, json)
    }

    /// Stores an event before the consumer group of the gateways has received it.
    func store(_ event: DecodedEvent, _ json: [UInt8]) async {
        for command in commands(for: event, json) { await send(command) }
    }

    private func commands(for event: DecodedEvent, _ json: [UInt8]) -> [[RedisArgument]] {
        guard let id = event.jobID, event.type != Event.Kind.progress.rawValue else { return [] }
        let seconds = json.count <= Self.mostBytes ? lifetime : min(lifetime, Self.imageLifetime)
        let (key, state) = (Self.key(of: id), RedisArgument.bytes(Self.state(after: event, json)))
        let ttl = RedisArgument.integer(Int(seconds * 1000))
        let command: [RedisArgument] =
            event.type == Event.Kind.started.rawValue
            ? ["EVAL", .string(Self.start), 1, key, state, ttl] : ["SET", key, state, "XX", "PX", ttl]
        return [command, ["PEXPIRE", Self.ownerKey(of: id), milliseconds]]
    }

    /// Replaces a state that is older than an event `started`, which may be stored after the end of the job: a gateway
    /// stores the end that it reports, before the consumer group of the gateways has received the events. KEYS: the
    /// state. ARGV: the new state and its TTL in milliseconds.
    private static let start = """
        local function time(state) return string.match(state, '"time":"([^"]+)"') or '' end
        local state = redis.call('GET', KEYS[1])
        if state and time(state) < time(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
        """

    /// Returns the state of a job after an event.
    static func state(after event: DecodedEvent, _ json: [UInt8]) -> [UInt8] {
        var writer = JSONWriter(capacity: json.count + 128)
        writer.object { writer in
            writer.member("id", event.jobID)
            writer.member("state", event.type)
            writer.name("event")
            writer.raw(json)
        }
        return writer.bytes
    }
}
