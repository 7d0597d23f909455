import HalcyonCluster
import HalcyonModel
import HalcyonResults
import Hashing
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// A server of the image routes, and the Redis with its results.
struct ImageFixture {
    let port: UInt16
    let cache: ResultCache
    let redis: RedisClient
    let server: RedisDeployment

    /// Returns `/v1/images/` followed by the percent-encoded key.
    func target(_ key: String) -> String {
        "/v1/images/" + key.replacing("{", with: "%7B").replacing("}", with: "%7D")
    }

    func ask(_ method: String, _ key: String, _ headers: String = "") async throws -> RawClient.RawResponse {
        try await RawClient(port).ask(method, target(key), headers)
    }

    func get(_ key: String, _ headers: String = "") async throws -> RawClient.RawResponse {
        try await ask("GET", key, headers)
    }

    /// Returns how often Redis has run each of these commands.
    func calls(_ names: Set<String>) async throws -> [String: Int] {
        let text = try await redis.send(["INFO", "commandstats"]).string ?? ""
        var calls: [String: Int] = [:]
        for line in text.split(whereSeparator: \.isNewline) where line.hasPrefix("cmdstat_") {
            let name = String(line.dropFirst(8).prefix { $0 != ":" })
            guard names.contains(name), let count = line.split(separator: "=").dropFirst().first else { continue }
            calls[name] = Int(count.prefix { $0 != "," })
        }
        return calls
    }

    // MARK: Stored results

    static let source = String(repeating: "0a", count: 16)
    static let key = "halcyon:{\(source)}:\(String(repeating: "1b", count: 16))"
    static let body = Array("the bytes of an image, whatever they are".utf8)

    static func metadata(_ body: [UInt8], _ format: ImageFormat = .png) -> ResultMetadata {
        ResultMetadata(
            width: 4, height: 3, format: format, bytes: body.count, sha256: SHA256.hash(body).description,
            source: SourceMetadata(status: 200, etag: nil, bytes: 9, format: .jpeg, width: 40, height: 30))
    }

    // MARK: Setup

    /// Runs `body` with a Redis and a server with these settings, and stops both.
    static func with(
        _ kind: RedisDeployment.Kind = .server, _ access: AccessOptions = AccessOptions(),
        _ settings: RedisSettings = .patient(), imageCache: ImageMemoryCacheOptions = .none, store: ResultStore? = nil,
        redirects: Bool = false, cacheTags: CacheTagOptions = CacheTagOptions(),
        _ body: (ImageFixture) async throws -> Void
    ) async throws {
        let server = try await RedisDeployment.start(kind)
        let redis = RedisClient(try RedisEndpoint(server.url), settings: settings)
        let cache = ResultCache(redis)
        let result: Result<Void, any Error>
        do {
            let headers = CommonHeaders(crossOrigin: CrossOrigin(origins: access.origins))
            let routes = ImageRoutes(
                results: cache, store: store, redirects: redirects, imageCache: ImageMemoryCache(imageCache),
                headers: headers, cacheTags: cacheTags, log: .silent
            ).all
            try await withServer(routes, access, responseHeadBytes: cacheTags.headBytes) {
                try await body(ImageFixture(port: $0, cache: cache, redis: redis, server: server))
            }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await redis.close()
        await server.stop()
        try result.get()
    }

    /// Returns the `max-age` of a response in seconds.
    static func maxAge(_ answer: RawClient.RawResponse) throws -> Int {
        let control = try #require(answer.headers["cache-control"])
        return try #require(control.split(separator: "max-age=").last.flatMap { Int($0) })
    }
}

extension ImageMemoryCacheOptions {
    /// Options that disable the cache.
    static var none: ImageMemoryCacheOptions {
        var options = ImageMemoryCacheOptions()
        options.time = .zero
        return options
    }
}
