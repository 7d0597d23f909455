import HTTPServer
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import Redis
import Telemetry

/// Routes that list, return, register and delete presets.
struct PresetRoutes: Sendable {
    let presets: PresetCatalog
    let service: PresetService
    let reader: JobDecoder
    let log: Log

    var all: [Route] {
        [
            Route("GET", "/v1/presets", for: .admin, answer: list),
            Route("GET", "/v1/presets/{name}", for: .admin, answer: show),
            Route("PUT", "/v1/presets/{name}", for: .admin, answer: put),
            Route("DELETE", "/v1/presets/{name}", for: .admin, answer: delete),
        ]
    }

    private func list(_ call: RequestContext) async throws -> HTTPServer.Response {
        try await presets.reloadForRequest()
        var writer = JSONWriter(capacity: 1024)
        writer.object { writer in
            writer.member("presets", presets.all.map { PresetDescription($0, in: presets) })
        }
        return HTTPServer.Response(status: 200, json: writer.bytes)
    }

    private func show(_ call: RequestContext) async throws -> HTTPServer.Response {
        try await presets.reloadForRequest()
        guard let preset = presets[call["name"]] else { throw Self.unknown(call["name"]) }
        return HTTPServer.Response(status: 200, json: PresetDescription(preset, in: presets).json)
    }

    private func put(_ call: RequestContext) async throws -> HTTPServer.Response {
        try call.requireJSON()
        let body = try await call.request.body.collect(upTo: Preset.maximumBytes)
        return try await changing {
            var preset = try Preset(call["name"], json: body)
            switch try await service.put(preset, checkedBy: reader) {
            case .stored(let version), .unchanged(let version): preset.version = version
            }
            return HTTPServer.Response(status: 200, json: PresetDescription(preset, in: presets).json)
        }
    }

    private func delete(_ call: RequestContext) async throws -> HTTPServer.Response {
        try await changing {
            guard try await service.delete(call["name"]) else { throw Self.unknown(call["name"]) }
            return HTTPServer.Response(status: 204)
        }
    }

    /// Changes a preset, and converts errors into problems.
    private func changing(_ body: () async throws -> HTTPServer.Response) async throws -> HTTPServer.Response {
        let response: HTTPServer.Response
        do {
            response = try await body()
        } catch let error as InvalidPresetError {
            throw Problem(.badRequest, "invalid \(error)")
        } catch let error as PresetError {
            throw Problem(.conflict, "\(error)")
        } catch let error as PresetNotBroadcast {
            log.warning("failed to broadcast a changed preset", ["error": "\(error.reason)"])
            throw Problem(
                .unavailable, "the preset was changed, but workers could not be notified; try again", retryAfter: 5)
        } catch let error as RedisError {
            log.warning("failed to change a preset", ["error": "\(error)"])
            throw Problem(.unavailable, "the preset cannot be changed at the moment; try again", retryAfter: 5)
        }
        presets.invalidate()
        return response
    }

    private static func unknown(_ name: String) -> Problem { Problem(.notFound, "there is no preset \(name)") }
}

/// A preset as clients see it: with its origin, the settings or Redis.
private struct PresetDescription: JSONWritable {
    private let preset: Preset
    private let isFixed: Bool

    init(_ preset: Preset, in presets: PresetCatalog) {
        self.preset = preset
        isFixed = presets.isFixed(preset.name)
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            preset.writeMembers(to: &writer)
            writer.member("origin", isFixed ? "settings" : "registered")
        }
    }
}

/// The presets of a gateway. They are loaded when a control message announces a change.
struct PresetUpdates: Sendable {
    let catalog: PresetCatalog
    private let store: PresetStore
    private let control: ControlReader

    /// Starts loading presets and reading control messages. The caller closes the updates.
    init(_ options: GatewayOptions, _ redis: RedisClient, log: Log, metrics: Metrics) {
        let store = PresetStore(redis, topics: options.topics)
        let catalog = PresetCatalog(options.presets, store, log: log)
        catalog.start()
        (self.store, self.catalog) = (store, catalog)
        control = ControlReader(options.control, log: log, metrics: metrics) { received in
            if case .preset = received.message { catalog.invalidate() }
        }
    }

    /// Creates the service that changes presets.
    func service(_ control: ControlPublisher) -> PresetService {
        PresetService(store, control) { [catalog] in catalog.isFixed($0) }
    }

    /// Stops reading control messages and loading presets.
    func close() async {
        await control.close()
        await catalog.close()
    }
}

extension PresetCatalog {
    /// Loads the presets for a request that names an unknown one.
    /// - Throws: ``Problem`` of the kind `unavailable` if Redis cannot be asked.
    func reloadForRequest() async throws(Problem) {
        do throws(RedisError) {
            try await reload()
        } catch {
            throw Problem(
                .unavailable, "the preset is not known here, and Redis cannot be asked for it at the moment; try again",
                retryAfter: 5)
        }
    }
}
