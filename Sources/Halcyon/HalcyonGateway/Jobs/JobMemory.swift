import HalcyonCluster
import HalcyonModel
import HalcyonWire
import JSON
import Kafka
import Redis
import Telemetry

/// What has become of the jobs that came by `POST /v1/jobs`, for whoever asks any of the gateways: in Redis, under `halcyon:job:ID`, for a time.
///
/// Beside it, under `halcyon:job-key:ID`, stands the name of the key that the job came by, so that nobody else cancels it or takes its id.
///
/// Jobs that came otherwise leave nothing there, for most of them nobody asks. A gateway notes that it has accepted a job; the gateways' group
/// follows the committed events and replaces what is noted, where something is.
struct JobMemory: Sendable {
    let redis: RedisClient
    /// Seconds after its last event that a job is remembered.
    let lifetime: Double
    let log: Log

    /// A larger event has an image in it that is not stored: it is kept in Redis for as long as workers hand over what no event can carry.
    private static let mostBytes = 64 << 10
    private static let imageLifetime = 300.0

    /// A job is about to be put on its queue. Redis away is no reason to refuse it: then nothing will be known of it.
    func note(accepted id: String) async {
        var writer = JSONWriter(capacity: 128)
        writer.object { writer in
            writer.member("id", id)
            writer.member("state", "accepted")
        }
        await send(["SET", Self.key(of: id), .bytes(writer.bytes), "PX", milliseconds])
    }

    /// Keeps an id for the bearer of a key for as long as its job is remembered. Redis away keeps it for nobody.
    /// - Throws: ``Problem``: it is another one's.
    func claim(_ id: String, for name: String) async throws(Problem) {
        let key = Self.ownerKey(of: id)
        let owner: [UInt8]?
        do throws(RedisError) {
            let taken = try await redis.send(["SET", key, .string(name), "PX", milliseconds, "NX"])
            owner = taken.isNull ? try await redis.send(["GET", key]).bytes : nil
        } catch {
            log.debug("it is not remembered whose a job is", ["error": "\(error)"])
            return
        }
        guard let owner else { return }
        guard owner == Array(name.utf8) else {
            throw Problem(.conflict, "a job with this id came by another key, and is remembered; take another id")
        }
        await send(["PEXPIRE", key, milliseconds])
    }

    /// Whether a job came by the key of this name, as far as is remembered.
    /// - Throws: ``Problem``: nobody can say now.
    func isOwned(_ id: String, by name: String) async throws(Problem) -> Bool {
        do throws(RedisError) {
            return try await redis.send(["GET", Self.ownerKey(of: id)]).bytes == Array(name.utf8)
        } catch {
            throw Problem(.unavailable, "whose this job is cannot be read now; try again", retryAfter: 2)
        }
    }

    /// It was not put there after all.
    func forget(_ id: String) async { await send(["DEL", Self.key(of: id)]) }

    /// What is known of a job, as JSON with its `id` and `state`; nil for nothing.
    /// - Throws: ``Problem``: nobody can say now.
    func state(of id: String) async throws(Problem) -> [UInt8]? {
        do throws(RedisError) {
            return try await redis.send(["GET", Self.key(of: id)]).bytes
        } catch {
            throw Problem(.unavailable, "what is known of jobs cannot be read now; ask again", retryAfter: 2)
        }
    }

    private func send(_ command: [RedisArgument]) async {
        do throws(RedisError) {
            _ = try await redis.send(command)
        } catch {
            log.debug("a job is not remembered", ["error": "\(error)"])
        }
    }

    private var milliseconds: RedisArgument { .integer(Int(lifetime * 1000)) }

    private static func key(of id: String) -> RedisArgument { .string("halcyon:job:\(id)") }
    private static func ownerKey(of id: String) -> RedisArgument { .string("halcyon:job-key:\(id)") }

    // MARK: Events

    /// Commands that note an event, if its job is remembered. Progress is not noted: the state stays `started`, and a late event of a worker that
    /// was suspended must not replace the terminal event of another one.
    func commands(for record: ConsumedRecord) -> [[RedisArgument]] {
        guard let json = record.value, let event = EventView(json: json), let id = event.jobID,
            event.type != Event.Kind.progress.rawValue
        else { return [] }
        let seconds = json.count <= Self.mostBytes ? lifetime : min(lifetime, Self.imageLifetime)
        let state = Self.state(after: event, json)
        return [
            ["SET", Self.key(of: id), .bytes(state), "XX", "PX", .integer(Int(seconds * 1000))],
            ["PEXPIRE", Self.ownerKey(of: id), milliseconds],
        ]
    }

    /// What is known of a job after an event of it.
    static func state(after event: EventView, _ json: [UInt8]) -> [UInt8] {
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
