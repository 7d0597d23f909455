import HTTPServer
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import HalcyonResults
import JSON
import Kafka
import Redis
import Telemetry

/// Serves `POST /v1/purge`: removes results, notifies all workers and publishes an event.
struct PurgeRoutes: Sendable {
    let purging: PurgeService
    let reader: JobDecoder
    let log: Log

    var all: [Route] { [Route("POST", "/v1/purge", for: .admin) { try await purge($0) }] }

    private func purge(_ call: RequestContext) async throws -> HTTPServer.Response {
        try call.requireJSON()
        let body = try await call.request.body.collect(upTo: reader.maximumBytes)
        let purge: Purge
        do throws(JSONError) {
            purge = try reader.purge(body)
        } catch {
            throw Problem(.badRequest, "invalid purge: \(error)")
        }
        do {
            var writer = JSONWriter(capacity: 256)
            writer.value(try await purging.run(purge))
            return HTTPServer.Response(status: 200, json: writer.bytes)
        } catch let error as PurgeNotBroadcast {
            log.warning("failed to broadcast purge to workers", ["error": "\(error.reason)"])
            throw Problem(
                .unavailable, "the results were removed, but workers and consumers could not be notified; try again",
                retryAfter: 5)
        } catch  where error is RedisError || error is StorageError {
            log.warning("failed to purge results", ["error": "\(error)"])
            throw Problem(.unavailable, "the results cannot be removed at the moment; try again", retryAfter: 5)
        }
    }
}

extension ControlPublisher {
    /// Publishes a message to all workers.
    /// - Throws: ``Problem`` if Kafka does not accept it.
    func notify(_ message: ControlMessage) async throws(Problem) {
        do throws(KafkaError) {
            try await publish(message)
        } catch {
            throw Problem(.unavailable, "workers cannot be notified at the moment; try again", retryAfter: 5)
        }
    }
}

/// Routes that cancel jobs by an attribute, pause and resume lanes and tenants, and list the jobs in flight.
struct ControlRoutes: Sendable {
    let control: ControlPublisher
    let pauses: PauseService
    let lister: JobLister
    let reader: JobDecoder
    let log: Log

    var all: [Route] {
        [
            Route("POST", "/v1/cancel", for: .admin, answer: cancel),
            Route("GET", "/v1/jobs", for: .admin, answer: list),
            Route("GET", "/v1/paused", for: .admin, answer: paused),
            Route("PUT", "/v1/paused/lanes/{lane}", for: .admin) { try await pause(Self.lane($0["lane"])) },
            Route("DELETE", "/v1/paused/lanes/{lane}", for: .admin) { try await resume(Self.lane($0["lane"])) },
            Route("PUT", "/v1/paused/tenants/{tenant}", for: .admin) { try await pause(Self.tenant($0["tenant"])) },
            Route("DELETE", "/v1/paused/tenants/{tenant}", for: .admin) { try await resume(Self.tenant($0["tenant"])) },
        ]
    }

    // MARK: Cancel

    /// Sends the cancellation to all workers. The events of the jobs report which were in time.
    private func cancel(_ call: RequestContext) async throws -> HTTPServer.Response {
        try call.requireJSON()
        let body = try await call.request.body.collect(upTo: reader.maximumBytes)
        let target: CancelTarget
        do throws(JSONError) {
            target = try reader.cancellation(body)
        } catch {
            throw Problem(.badRequest, "invalid cancellation: \(error)")
        }
        if case .job = target {
            throw Problem(.badRequest, "invalid cancellation: expected an object; use DELETE /v1/jobs/{id} for a job")
        }
        try await control.notify(.cancel(target))
        var writer = JSONWriter(capacity: 128)
        writer.object { writer in
            writer.member("cancel", target)
            writer.member("state", "cancelling")
        }
        return HTTPServer.Response(status: 202, json: writer.bytes)
    }

    // MARK: Pause

    private func paused(_ call: RequestContext) async throws -> HTTPServer.Response {
        try await changing {
            var writer = JSONWriter(capacity: 256)
            writer.value(try await pauses.pauses())
            return HTTPServer.Response(status: 200, json: writer.bytes)
        }
    }

    private func pause(_ target: PauseTarget) async throws -> HTTPServer.Response {
        try await changing {
            var writer = JSONWriter(capacity: 64)
            writer.value(try await pauses.pause(target).paused)
            return HTTPServer.Response(status: 200, json: writer.bytes)
        }
    }

    private func resume(_ target: PauseTarget) async throws -> HTTPServer.Response {
        try await changing {
            guard try await pauses.resume(target) else {
                throw Problem(.notFound, "the lane or tenant is not paused")
            }
            return HTTPServer.Response(status: 204)
        }
    }

    /// Converts errors into problems.
    private func changing(_ body: () async throws -> HTTPServer.Response) async throws -> HTTPServer.Response {
        do {
            return try await body()
        } catch let error as PauseError {
            throw Problem(.conflict, "\(error)")
        } catch let error as PauseNotBroadcast {
            log.warning("failed to broadcast a pause to workers", ["error": "\(error.reason)"])
            throw Problem(
                .unavailable, "the change was stored, but workers could not be notified; try again", retryAfter: 5)
        } catch let error as RedisError {
            log.warning("failed to access the paused lanes and tenants", ["error": "\(error)"])
            throw Problem(
                .unavailable, "the paused lanes and tenants cannot be accessed at the moment; try again", retryAfter: 5)
        }
    }

    private static func lane(_ text: String) throws(Problem) -> PauseTarget {
        guard let lane = Lane(rawValue: text) else {
            throw Problem(.notFound, "unknown lane; expected high, normal or low")
        }
        return .lane(lane)
    }

    private static func tenant(_ text: String) throws(Problem) -> PauseTarget {
        guard Job.isTenant(text) else {
            throw Problem(
                .badRequest,
                "tenant must be 1 to \(Job.longestTenant) letters, digits, dots, hyphens and underscores")
        }
        return .tenant(text)
    }

    // MARK: List

    /// The time that workers have for their replies.
    private static let patience = Duration.seconds(3)

    private func list(_ call: RequestContext) async throws -> HTTPServer.Response {
        let limit = try call.number("limit", in: 1...JobListRequest.mostJobs) ?? JobListRequest.standardLimit
        var (tenant, lane): (String?, Lane?)
        if let text = call.request.value(of: "tenant") {
            _ = try Self.tenant(text)
            tenant = text
        }
        if let text = call.request.value(of: "lane") {
            lane = Lane(rawValue: text)
            if lane == nil { throw Problem(.badRequest, "lane must be high, normal or low") }
        }
        do {
            var writer = JSONWriter(capacity: 4096)
            writer.value(try await lister.list(limit: limit, tenant: tenant, lane: lane, within: Self.patience))
            return HTTPServer.Response(status: 200, json: writer.bytes)
        } catch let error where error is RedisError || error is KafkaError {
            log.warning("failed to list the jobs in flight", ["error": "\(error)"])
            throw Problem(.unavailable, "workers cannot be asked at the moment; try again", retryAfter: 5)
        }
    }
}
