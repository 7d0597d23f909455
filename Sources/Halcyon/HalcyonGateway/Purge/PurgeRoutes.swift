import HTTPServer
import HalcyonCluster
import HalcyonModel
import HalcyonWire
import JSON
import Redis
import Telemetry

/// `POST /v1/purge`: results are forgotten, and everybody is told.
struct PurgeRoutes: Sendable {
    let purging: Purging
    let reader: JobReader
    let log: Log

    var all: [Route] { [Route("POST", "/v1/purge", for: .admin) { try await purge($0) }] }

    private func purge(_ call: Call) async throws -> HTTPServer.Response {
        guard call.bodyType == "application/json" else {
            throw Problem(.unsupportedMediaType, "a purge is application/json")
        }
        let body = try await call.request.body.collect(atMost: reader.maximumBytes)
        let purge: Purge
        do throws(JSONError) {
            purge = try reader.purge(body)
        } catch {
            throw Problem(.badRequest, "the purge: \(error)")
        }
        do {
            var writer = JSONWriter(capacity: 256)
            writer.value(try await purging.run(purge))
            return HTTPServer.Response(status: 200, json: writer.bytes)
        } catch let error as PurgeNotTold {
            log.warning("a purge was not told", ["error": "\(error.reason)"])
            throw Problem(
                .unavailable, "the results are forgotten, but workers and consumers were not told; purge again",
                retryAfter: 5)
        } catch let error as RedisError {
            log.warning("a purge failed", ["error": "\(error)"])
            throw Problem(.unavailable, "results cannot be forgotten now; purge again", retryAfter: 5)
        }
    }
}
