import Concurrency
import Formats
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import Redis
import Telemetry

/// The lanes and tenants that are paused, and those that were resumed recently. A pure value.
///
/// For each of them, the change with the highest version counts, whatever the order in which changes become known.
/// Copies therefore agree once they have exchanged their changes.
public struct Pauses: Hashable, Sendable {
    /// The last change of a lane or tenant.
    public struct Change: Hashable, Sendable {
        /// True if it was paused, false if it was resumed.
        public var isPaused: Bool
        /// The time of the change by the clock of Redis, in microseconds since 1970.
        public var version: Int64

        /// Creates a change from all values.
        public init(isPaused: Bool, version: Int64) {
            self.isPaused = isPaused
            self.version = version
        }

        /// The form in Redis: `paused VERSION` or `resumed VERSION`.
        var text: String { "\(isPaused ? "paused" : "resumed") \(version)" }

        init?(_ text: String) {
            let parts = text.split(separator: " ")
            guard parts.count == 2, ["paused", "resumed"].contains(parts[0]), let version = Int64(parts[1]) else {
                return nil
            }
            self.init(isPaused: parts[0] == "paused", version: version)
        }

        /// True if this change counts, and not the other one. Of two changes at the same time, the one that resumes
        /// counts.
        func supersedes(_ other: Change?) -> Bool {
            guard let other else { return true }
            return version > other.version || version == other.version && !isPaused && other.isPaused
        }
    }

    /// The time in microseconds for which a resumption is remembered, so that an older pause that becomes known later
    /// has no effect. Older changes are ignored.
    static let memory: Int64 = 86_400_000_000

    private(set) var changes: [PauseTarget: Change] = [:]

    /// Creates a value with nothing paused.
    public init() {}

    init(_ changes: [PauseTarget: Change]) { self.changes = changes }

    /// Records a change unless it is superseded.
    public mutating func record(_ change: Change, of target: PauseTarget) {
        if change.supersedes(changes[target]) { changes[target] = change }
    }

    /// Records the changes of another copy.
    mutating func merge(_ other: Pauses) {
        for (target, change) in other.changes { record(change, of: target) }
    }

    /// Forgets resumptions that are older than ``memory``.
    mutating func forgetOld(now: Int64) {
        changes = changes.filter { $0.value.isPaused || $0.value.version >= now - Self.memory }
    }

    /// Returns the changes that supersede those of another copy. A resumption of something that the other copy does not
    /// know has no effect there.
    func changes(since other: Pauses) -> [PauseTarget: Change] {
        changes.filter { target, change in
            change.supersedes(other.changes[target]) && (change.isPaused || other.changes[target] != nil)
        }
    }

    /// The lanes that are paused.
    public var lanes: Set<Lane> {
        Set(changes.lazy.compactMap { if case .lane(let lane) = $0, $1.isPaused { lane } else { nil } })
    }

    /// The tenants that are paused.
    public var tenants: Set<String> {
        Set(changes.lazy.compactMap { if case .tenant(let tenant) = $0, $1.isPaused { tenant } else { nil } })
    }

    /// Everything that is paused, with the time since which it is, in microseconds since 1970. Lanes come first.
    public var paused: [(target: PauseTarget, since: Int64)] {
        let lanes = Lane.allCases.map(PauseTarget.lane)
        return (lanes + tenants.sorted().map(PauseTarget.tenant)).compactMap { target in
            changes[target].flatMap { $0.isPaused ? (target, $0.version) : nil }
        }
    }
}

extension Pauses: JSONWritable {
    /// Writes an object with the lists `lanes` and `tenants`.
    public func write(to writer: inout JSONWriter) {
        let paused = paused.map { PausedTarget(target: $0.target, since: $0.since) }
        writer.object { writer in
            writer.member("lanes", paused.filter { if case .lane = $0.target { true } else { false } })
            writer.member("tenants", paused.filter { if case .tenant = $0.target { true } else { false } })
        }
    }
}

/// A lane or tenant that is paused.
public struct PausedTarget: JSONWritable, Hashable, Sendable {
    /// The lane or tenant.
    public let target: PauseTarget
    /// The time since which it is paused, in microseconds since 1970.
    public let since: Int64

    /// Creates a description from all values.
    /// - Parameters:
    ///   - target: The lane or tenant.
    ///   - since: The time since which it is paused, in microseconds since 1970.
    public init(target: PauseTarget, since: Int64) {
        self.target = target
        self.since = since
    }

    /// Writes an object with the lane or tenant and the time.
    public func write(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

    /// Writes the lane or tenant and the time to an object.
    public func writeMembers(to writer: inout JSONWriter) {
        target.writeMember(to: &writer)
        writer.member("since", Timestamp(milliseconds: since / 1000).rfc3339)
    }
}

/// The paused lanes and tenants in Redis, shared by all workers and gateways with the same topic prefix.
///
/// They are one hash, so that they are in one hash slot of a Redis Cluster and are read atomically. A field is
/// `lane:LANE` or `tenant:TENANT`. Its value is `paused VERSION`, or for a day afterwards `resumed VERSION`. The hash
/// has no TTL.
public struct PauseStore: Sendable {
    /// The maximum number of paused lanes and tenants.
    public static let most = 1000

    private let redis: RedisClient
    private let key: RedisArgument

    /// Creates a store that uses the given client. The caller owns the client and closes it.
    /// - Parameters:
    ///   - redis: The client.
    ///   - topics: The topics of the cluster, whose prefix is part of the key.
    public init(_ redis: RedisClient, topics: Topics) {
        self.redis = redis
        key = .string("halcyon:paused:{\(topics.prefix)}")
    }

    /// Returns all changes that Redis remembers.
    /// - Throws: `RedisError`.
    public func pauses() async throws(RedisError) -> Pauses {
        let fields = try await redis.send("HGETALL", key).array ?? []
        var changes: [PauseTarget: Pauses.Change] = [:]
        for index in stride(from: 0, to: fields.count - 1, by: 2) {
            // Fields of another form are ignored.
            if let target = fields[index].string.flatMap(PauseTarget.init(field:)),
                let change = fields[index + 1].string.flatMap(Pauses.Change.init)
            {
                changes[target] = change
            }
        }
        return Pauses(changes)
    }

    /// Pauses or resumes a lane or tenant.
    /// - Parameters:
    ///   - target: The lane or tenant.
    ///   - isPaused: True to pause it, false to resume it.
    /// - Returns: The version of the last change, and true if it was made now.
    /// - Throws: ``PauseError/tooMany``; `RedisError`.
    public func set(_ target: PauseTarget, isPaused: Bool) async throws -> (version: Int64, isNew: Bool) {
        let reply = try await run(target, isPaused, version: "")
        guard let parts = reply.array, parts.count == 2, let outcome = parts[0].string,
            let version = parts[1].string.flatMap({ Int64($0) })
        else { throw RedisError(.protocolError, "unexpected reply from the pause script: \(reply)") }
        if outcome == "full" { throw PauseError.tooMany }
        return (version, outcome == "changed")
    }

    /// Stores changes that supersede those in Redis. Pauses beyond ``most`` are ignored.
    /// - Throws: `RedisError`.
    func store(_ changes: [PauseTarget: Pauses.Change]) async throws(RedisError) {
        for (target, change) in changes {
            _ = try await run(target, change.isPaused, version: "\(change.version)")
        }
    }

    private func run(
        _ target: PauseTarget, _ isPaused: Bool, version: String
    ) async throws(RedisError) -> RedisValue {
        try await redis.run(
            Self.setting, keys: [key],
            arguments: [
                .string(target.field), .string(isPaused ? "paused" : "resumed"), .string(version), .integer(Self.most),
                .integer(Int(Pauses.memory)),
            ])
    }

    // KEYS: the hash. ARGV: field, "paused" or "resumed", version or "" for a change now, maximum number of pauses, and
    // the microseconds for which resumptions are remembered. Versions are below 2^53, the limit of exact integers in
    // Lua.
    private static let setting = RedisScript(
        """
        local function parse(value)
            local word, version = string.match(value or '', '^(%a+) (%d+)$')
            return word or 'resumed', tonumber(version) or 0
        end
        local time = redis.call('TIME')
        local now = time[1] * 1000000 + time[2]
        local word, last = parse(redis.call('HGET', KEYS[1], ARGV[1]))
        local version = tonumber(ARGV[3])
        if version then
            local isNewer = version > last or (version == last and word == 'paused' and ARGV[2] == 'resumed')
            if not isNewer or (last == 0 and ARGV[2] == 'resumed') then
                return {'unchanged', string.format('%.0f', last)}
            end
        elseif word == 'paused' and ARGV[2] == 'paused' then
            return {'unchanged', string.format('%.0f', last)}
        else
            version = math.max(now, last + 1)
            -- Workers may know a pause that Redis has lost.
            if word == ARGV[2] then return {'unchanged', string.format('%.0f', version)} end
        end
        local fields = redis.call('HGETALL', KEYS[1])
        local paused = 0
        for i = 1, #fields, 2 do
            local other, changed = parse(fields[i + 1])
            if other == 'paused' then
                paused = paused + 1
            elseif changed < now - tonumber(ARGV[5]) then
                redis.call('HDEL', KEYS[1], fields[i])
            end
        end
        if ARGV[2] == 'paused' and word ~= 'paused' and paused >= tonumber(ARGV[4]) then return {'full', '0'} end
        redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. string.format(' %.0f', version))
        return {'changed', string.format('%.0f', version)}
        """)
}

extension PauseTarget {
    /// The name of the field in Redis.
    fileprivate var field: String {
        switch self {
        case .lane(let lane): "lane:\(lane.rawValue)"
        case .tenant(let tenant): "tenant:\(tenant)"
        }
    }

    fileprivate init?(field: String) {
        let parts = field.split(separator: ":", maxSplits: 1).map { String($0) }
        guard parts.count == 2 else { return nil }
        switch parts[0] {
        case "lane":
            guard let lane = Lane(rawValue: parts[1]) else { return nil }
            self = .lane(lane)
        case "tenant" where Job.isTenant(parts[1]): self = .tenant(parts[1])
        default: return nil
        }
    }
}

/// A worker's copy of the paused lanes and tenants.
///
/// It follows the control topic and is compared with Redis every ten seconds and after each message. Changes that Redis
/// does not know, because it lost its data or because they were written to the topic by another program, are stored
/// there. While Redis is unavailable, the copy follows the topic alone.
public final class PauseReplica: Sendable {
    private let store: PauseStore
    private let pauses = Lock(Pauses())
    private let refresher = Refresher()
    private let onChange = Lock<@Sendable () -> Void>({})

    /// The time to wait for the first load.
    private static let patience = Duration.seconds(2)

    /// Creates a copy with nothing paused.
    public init(_ store: PauseStore, metrics: Metrics) {
        self.store = store
        for lane in Lane.allCases {
            metrics.observable(
                .gauge, "halcyon_lane_paused", help: "1 while the lane is paused, otherwise 0.",
                labels: ["lane": lane.rawValue]
            ) { [weak self] in self?.current.lanes.contains(lane) == true ? 1 : 0 }
        }
        metrics.observable(.gauge, "halcyon_tenants_paused", help: "Tenants that are paused.") { [weak self] in
            Double(self?.current.tenants.count ?? 0)
        }
    }

    /// The lanes and tenants that are paused now, as far as they are known.
    public var current: Pauses { pauses.withLock { $0 } }

    /// Loads the pauses, and repeats that every ten seconds until ``close()``. If Redis is unavailable, nothing is paused
    /// until it returns or a control message arrives.
    /// - Parameter onChange: The callback for changes.
    public func start(_ onChange: @escaping @Sendable () -> Void) async {
        self.onChange.withLock { $0 = onChange }
        await withTimeout(Self.patience) { [self] in
            // Without Redis the repetition loads them later.
            try? await refresher.refresh(load)
        }
        refresher.start(load)
    }

    /// Takes a change from a control message.
    /// - Parameters:
    ///   - target: The lane or tenant.
    ///   - change: The change. It is ignored if it is older than a day.
    public func take(_ change: Pauses.Change, of target: PauseTarget) {
        guard change.version >= Timestamp.now.milliseconds * 1000 - Pauses.memory else { return }
        update { $0.record(change, of: target) }
        refresher.invalidate(load)
    }

    /// Ends the loads.
    public func close() async { await refresher.close() }

    private func load() async -> RedisError? {
        do throws(RedisError) {
            let stored = try await store.pauses()
            update { $0.merge(stored) }
            try await store.store(current.changes(since: stored))
            return nil
        } catch {
            return error
        }
    }

    private func update(_ change: (inout Pauses) -> Void) {
        let isChanged = pauses.withLock { pauses in
            let before = (pauses.lanes, pauses.tenants)
            change(&pauses)
            pauses.forgetOld(now: Timestamp.now.milliseconds * 1000)
            return before != (pauses.lanes, pauses.tenants)
        }
        if isChanged { onChange.withLock { $0 }() }
    }
}

/// The reason for which a lane or tenant was not paused.
public enum PauseError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The maximum number of pauses is reached.
    case tooMany

    /// The reason.
    public var description: String { "\(PauseStore.most) lanes and tenants are paused, which is the maximum" }
}

/// Pauses and resumes lanes and tenants: changes Redis and notifies workers.
public struct PauseService: Sendable {
    private let store: PauseStore
    private let control: ControlPublisher

    /// Creates a service.
    /// - Parameters:
    ///   - store: The pauses in Redis.
    ///   - control: The publisher of control messages.
    public init(_ store: PauseStore, _ control: ControlPublisher) {
        self.store = store
        self.control = control
    }

    /// Returns everything that is paused.
    /// - Throws: `RedisError`.
    public func pauses() async throws(RedisError) -> Pauses { try await store.pauses() }

    /// Pauses a lane or tenant and notifies workers, even if it is paused already, because an earlier notification may
    /// have failed.
    /// - Parameter target: The lane or tenant.
    /// - Returns: The time since which it is paused, and true if it was not paused before.
    /// - Throws: ``PauseError``, `RedisError`; ``PauseNotBroadcast`` if Redis was changed, but nobody was notified.
    public func pause(_ target: PauseTarget) async throws -> (paused: PausedTarget, isNew: Bool) {
        let (version, isNew) = try await store.set(target, isPaused: true)
        try await broadcast(.pause(target, at: version))
        return (PausedTarget(target: target, since: version), isNew)
    }

    /// Resumes a lane or tenant and notifies workers, even if it is not paused, because an earlier notification may
    /// have failed.
    /// - Parameter target: The lane or tenant.
    /// - Returns: False if it was not paused.
    /// - Throws: `RedisError`; ``PauseNotBroadcast`` if Redis was changed, but nobody was notified.
    public func resume(_ target: PauseTarget) async throws -> Bool {
        let (version, isNew) = try await store.set(target, isPaused: false)
        try await broadcast(.resume(target, at: version))
        return isNew
    }

    private func broadcast(_ message: ControlMessage) async throws(PauseNotBroadcast) {
        do throws(KafkaError) {
            try await control.publish(message)
        } catch {
            throw PauseNotBroadcast(reason: error)
        }
    }
}

/// The error of a change in Redis that workers could not be notified of. They notice it within a minute.
public struct PauseNotBroadcast: Error, CustomStringConvertible {
    /// The error that prevented the notification.
    public let reason: KafkaError

    /// The error, with a remedy.
    public var description: String {
        "Redis was changed, but workers were not notified; repeat the command, or wait a minute: \(reason)"
    }
}
