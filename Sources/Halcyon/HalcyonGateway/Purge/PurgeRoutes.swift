import HTTPServer
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import HalcyonResults
import JSON
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
        let body = try await call.request.body.collect(withTimeout: reader.maximumBytes)
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
