import CivilTime
import Digests
import HTTPServer
import HalcyonCluster
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// Images as Redis has them, over HTTP.
@Suite(.takesTurns) struct ImageRouteTests {
    private static let source = String(repeating: "0a", count: 16)
    private static let key = "halcyon:{\(source)}:\(String(repeating: "1b", count: 16))"
    private static let body = Array("the bytes of an image, whatever they are".utf8)

    private static func facts(_ body: [UInt8], _ format: ImageFormat = .png) -> ResultFacts {
        ResultFacts(
            width: 4, height: 3, format: format, bytes: body.count, sha256: SHA256.hash(body).description,
            source: SourceFacts(status: 200, etag: nil, bytes: 9, format: .jpeg, width: 40, height: 30))
    }

    private struct Setting {
        let port: UInt16
        let tier: ResultTier
        let redis: RedisClient
        let server: RedisDeployment

        /// `/v1/images/` and the key, percent-encoded.
        func target(_ key: String) -> String {
            "/v1/images/" + key.replacing("{", with: "%7B").replacing("}", with: "%7D")
        }

        func ask(_ method: String, _ key: String, _ headers: String = "") async throws -> RawClient.Answer {
            try await RawClient(port).ask(method, target(key), headers)
        }

        func get(_ key: String, _ headers: String = "") async throws -> RawClient.Answer {
            try await ask("GET", key, headers)
        }

        /// Commands that the server has done of these kinds.
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
    }

    private func with(
        _ kind: RedisDeployment.Kind = .server, _ access: AccessOptions = AccessOptions(),
        _ settings: RedisSettings? = nil, shelf: ShelfOptions = .none, _ body: (Setting) async throws -> Void
    ) async throws {
        var patient = RedisSettings()
        (patient.commandTimeout, patient.connectTimeout) = (.seconds(120), .seconds(120))
        patient.outageGrace = .seconds(120)
        let server = try await RedisDeployment.start(kind)
        let redis = RedisClient(try RedisEndpoint(server.url), settings: settings ?? patient)
        let tier = ResultTier(redis)
        let result: Result<Void, any Error>
        do {
            let headers = CommonHeaders(crossOrigin: CrossOrigin(origins: access.origins))
            let routes = ImageRoutes(results: tier, shelf: ImageShelf(shelf), headers: headers, log: .silent).all
            try await withServed(routes, access) {
                try await body(Setting(port: $0, tier: tier, redis: redis, server: server))
            }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await redis.close()
        await server.stop()
        try result.get()
    }

    private func maxAge(_ answer: RawClient.Answer) throws -> Int {
        let control = try #require(answer.headers["cache-control"])
        return try #require(control.split(separator: "max-age=").last.flatMap { Int($0) })
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func anImageIsGivenWithWhatIsKnownOfIt(on kind: RedisDeployment.Kind) async throws {
        try await with(kind) { setting in
            let facts = Self.facts(Self.body)
            _ = try await setting.tier.store(Self.body, facts, as: Self.key, for: 600, by: .response)
            let answer = try await setting.get(Self.key)
            #expect(answer.status == 200 && answer.body == Self.body)
            #expect(answer.headers["content-type"] == "image/png")
            #expect(answer.headers["etag"] == "\"\(facts.sha256)\"")
            #expect(answer.headers["accept-ranges"] == "bytes")
            #expect(answer.headers["content-length"] == "\(Self.body.count)")
            #expect(answer.headers["cross-origin-resource-policy"] == "cross-origin")
            #expect(answer.headers["content-disposition"] == nil)
            #expect(answer.headers["cache-control"]?.hasPrefix("public, max-age=") == true)
            // By the server's own clock.
            let left = try await setting.redis.send(["PTTL", .string(Self.key)]).integer ?? 0
            #expect((left / 1000...600).contains(try maxAge(answer)))

            let head = try await setting.ask("HEAD", Self.key)
            #expect(head.status == 200)
            for name in ["content-type", "etag", "accept-ranges", "content-length", "cross-origin-resource-policy"] {
                #expect(head.headers[name] == answer.headers[name])
            }
            // An image is the same for as long as its bytes are.
            _ = try await setting.tier.store([1, 2], Self.facts([1, 2]), as: Self.key, for: 600, by: .response)
            #expect(try await setting.get(Self.key).headers["etag"] != answer.headers["etag"])
        }
    }

    @Test func largeImagesComeWhole() async throws {
        try await with { setting in
            let large = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 8) }
            _ = try await setting.tier.store(large, Self.facts(large), as: Self.key, for: 600, by: .response)
            let answer = try await setting.get(Self.key)
            #expect(answer.body == large && answer.headers["content-length"] == "3000000")
            let part = try await setting.get(Self.key, "Range: bytes=1000000-\r\n")
            #expect(part.status == 206 && part.body.elementsEqual(large[1_000_000...]))
            #expect(try await setting.ask("HEAD", Self.key).headers["content-length"] == "3000000")
        }
    }

    @Test func whoHasItIsToldSo() async throws {
        try await with { setting in
            let tag = "\"\(Self.facts(Self.body).sha256)\""
            _ = try await setting.tier.store(Self.body, Self.facts(Self.body), as: Self.key, for: 600, by: .response)
            for value in [tag, "W/\(tag)", "\"x\", \(tag)", "*"] {
                for method in ["GET", "HEAD"] {
                    let answer = try await setting.ask(method, Self.key, "If-None-Match: \(value)\r\n")
                    #expect(answer.status == 304 && answer.headers["etag"] == tag && answer.body.isEmpty)
                    #expect((500...600).contains(try maxAge(answer)))
                    #expect(answer.headers["content-type"] == nil)
                }
            }
            let other = try await setting.get(Self.key, "If-None-Match: \"x\"\r\n")
            #expect(other.status == 200 && other.body == Self.body)
            // What is not there is not, whatever the reader has.
            await #expect(throws: Never.self) {
                _ = try await setting.redis.send(["DEL", .string(Self.key)])
            }
            #expect(try await setting.get(Self.key, "If-None-Match: *\r\n").status == 404)
        }
    }

    @Test func partsAreGiven() async throws {
        try await with { setting in
            let tag = "\"\(Self.facts(Self.body).sha256)\""
            let count = Self.body.count
            _ = try await setting.tier.store(Self.body, Self.facts(Self.body), as: Self.key, for: 600, by: .response)
            for (range, part) in [("0-3", 0..<4), ("4-", 4..<count), ("-5", count - 5..<count), ("0-99999", 0..<count)]
            {
                for condition in ["", "If-Range: \(tag)\r\n"] {
                    let answer = try await setting.get(Self.key, "Range: bytes=\(range)\r\n\(condition)")
                    #expect(answer.status == 206 && answer.body.elementsEqual(Self.body[part]))
                    #expect(
                        answer.headers["content-range"]
                            == "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(count)")
                    #expect(answer.headers["etag"] == tag && answer.headers["content-type"] == "image/png")
                }
            }
            for headers in [
                "Range: bytes=0-3\r\nIf-Range: \"x\"\r\n", "Range: bytes=0-3\r\nIf-Range: W/\(tag)\r\n",
                "Range: bytes=0-3,5-6\r\n", "Range: pages=1-2\r\n",
            ] {
                let answer = try await setting.get(Self.key, headers)
                #expect(answer.status == 200 && answer.body == Self.body)
            }
            let none = try await setting.get(Self.key, "Range: bytes=\(count)-\r\n")
            #expect(none.status == 416 && none.headers["content-range"] == "bytes */\(count)")
            #expect(none.headers["content-type"] == "application/problem+json")
            // A range is for GET; what the reader has comes before it.
            #expect(try await setting.ask("HEAD", Self.key, "Range: bytes=0-3\r\n").status == 200)
            #expect(
                try await setting.get(Self.key, "Range: bytes=0-3\r\nIf-None-Match: \(tag)\r\n").status == 304)
        }
    }

    @Test func nothingButImagesIsRead() async throws {
        try await with { setting in
            _ = try await setting.tier.store(Self.body, Self.facts(Self.body), as: Self.key, for: 600, by: .response)
            let secret = String(repeating: "2c", count: 16)
            // Each of them could be read as an image if it were asked for.
            let others = [
                "halcyon:{\(Self.source)}:source", "halcyon:{\(Self.source)}:results",
                "halcyon:{\(Self.source)}:fences",
                "halcyon:{\(Self.source)}:lease:\(secret)", "halcyon:{\(Self.source)}:other:\(secret)", "secret",
                "halcyon:{\(Self.source)}:\(secret):handoff:\(secret)", "halcyon:{\(Self.source)}:handoff:\(secret)0",
                "halcyon:{\(Self.source)}:handoff:", "halcyon:{\(Self.source)}:handoff:handoff:\(secret)",
                "halcyon:{\(Self.source)}:\(secret)0", "halcyon:{\(Self.source.uppercased())}:\(secret)",
                "other:{\(Self.source)}:\(secret)", "halcyon:\(Self.source):\(secret)", "halcyon:{clock}", "budget:",
            ]
            for other in others { _ = try await setting.redis.send(["COPY", .string(Self.key), .string(other)]) }
            let before = try await setting.calls(["hmget", "evalsha", "hget"])
            for other in others {
                #expect(try await setting.get(other).status == 404, "\(other)")
                #expect(try await setting.ask("HEAD", other).status == 404, "\(other)")
            }
            #expect(try await setting.get("").status == 404)
            #expect(try await setting.calls(["hmget", "evalsha", "hget"]) == before)
        }
    }

    @Test func aMissIsAMissAndMakesNothing() async throws {
        try await with { setting in
            let answer = try await setting.get(Self.key)
            #expect(answer.status == 404 && answer.headers["cache-control"] == "no-store")
            #expect(try await setting.ask("HEAD", Self.key).status == 404)
            _ = try await setting.tier.store(Self.body, Self.facts(Self.body), as: Self.key, for: 0.05, by: .response)
            try await until("the image expires") { try await setting.get(Self.key).status == 404 }
            // Another version's facts.
            _ = try await setting.redis.send(["HSET", .string(Self.key), "body", "x", "facts", "{}"])
            #expect(try await setting.get(Self.key).status == 404)
            // Facts alone.
            _ = try await setting.tier.store(Self.body, Self.facts(Self.body), as: Self.key, for: 600, by: .response)
            _ = try await setting.redis.send(["HDEL", .string(Self.key), "body"])
            #expect(try await setting.get(Self.key).status == 404)
        }
    }

    @Test func oneRoundTripIsEnoughAndBytesAreReadWhenTheyAreSent() async throws {
        try await with { setting in
            let large = [UInt8](repeating: 7, count: 1_000_000)
            _ = try await setting.tier.store(large, Self.facts(large), as: Self.key, for: 600, by: .response)
            func sent() async throws -> Int {
                let text = try await setting.redis.send(["INFO", "stats"]).string ?? ""
                let line = text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("total_net_output_bytes:") }
                return try #require(line?.split(separator: ":").last.flatMap { Int($0) })
            }
            let names: Set = ["hmget", "pttl", "hget", "evalsha", "eval"]
            let before = try await setting.calls(names)
            _ = try await setting.get(Self.key)
            let after = try await setting.calls(names)
            #expect((after["hmget"] ?? 0) == (before["hmget"] ?? 0) + 1)
            #expect((after["pttl"] ?? 0) == (before["pttl"] ?? 0) + 1)
            #expect(after["evalsha"] == before["evalsha"] && after["hget"] == before["hget"])

            let start = try await sent()
            for _ in 0..<5 { _ = try await setting.ask("HEAD", Self.key) }
            let tag = "\"\(Self.facts(large).sha256)\""
            for _ in 0..<5 { _ = try await setting.get(Self.key, "If-None-Match: \(tag)\r\n") }
            #expect(try await sent() - start < 500_000)
        }
    }

    @Test func whatManyAskForIsReadOnceInAWhile() async throws {
        var shelf = ShelfOptions()
        // So that none is over while the test runs; what then happens is ImageShelf's own tests' matter.
        shelf.time = .seconds(500)
        try await with(shelf: shelf) { setting in
            let facts = Self.facts(Self.body)
            _ = try await setting.tier.store(Self.body, facts, as: Self.key, for: 600, by: .response)
            // Without its bytes an image is not kept.
            _ = try await setting.ask("HEAD", Self.key)
            let first = try await setting.get(Self.key)
            _ = try await setting.redis.send(["DEL", .string(Self.key)])
            let before = try await setting.calls(["hmget", "pttl"])
            let second = try await setting.get(Self.key)
            #expect(second.status == 200 && second.body == Self.body)
            for name in ["etag", "content-type", "accept-ranges"] {
                #expect(second.headers[name] == first.headers[name])
            }
            #expect(try maxAge(second) <= maxAge(first))
            let head = try await setting.ask("HEAD", Self.key)
            #expect(head.status == 200 && head.headers["content-length"] == "\(Self.body.count)")
            #expect(try await setting.get(Self.key, "If-None-Match: \"\(facts.sha256)\"\r\n").status == 304)
            #expect(try await setting.get(Self.key, "If-None-Match: \"x\"\r\n").body == Self.body)
            let part = try await setting.get(Self.key, "Range: bytes=0-3\r\n")
            #expect(part.status == 206 && part.body.elementsEqual(Self.body[..<4]))
            #expect(try await setting.calls(["hmget", "pttl"]) == before)
        }
    }

    @Test func aHandOffIsNotKept() async throws {
        try await with(shelf: ShelfOptions()) { setting in
            let key = ResultTier.handOffKey(for: try #require(ResultKey(Self.key)))
            _ = try await setting.tier.handOff(Self.body, Self.facts(Self.body), as: key, for: 600)
            #expect(try await setting.get(key).status == 200)
            #expect(try await setting.get(key).status == 404)
        }
    }

    @Test func lookingIsNoUse() async throws {
        try await with { setting in
            _ = try await setting.tier.store(Self.body, Self.facts(Self.body), as: Self.key, for: 600, by: .response)
            func keys() async throws -> Set<String> {
                Set((try await setting.redis.send(["KEYS", "*"]).array ?? []).compactMap(\.string))
            }
            func fields() async throws -> RedisValue {
                try await setting.redis.send([
                    "HMGET", .string(Self.key), "body", "facts", "expiresAt", "storedAt", "rule", "fence",
                ])
            }
            let (before, stored) = (try await keys(), try await fields())
            let end = try await setting.redis.send(["PEXPIRETIME", .string(Self.key)])
            _ = try await setting.get(Self.key)
            _ = try await setting.ask("HEAD", Self.key)
            #expect(try await keys() == before)
            #expect(try await fields() == stored)
            #expect(try await setting.redis.send(["PEXPIRETIME", .string(Self.key)]) == end)
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func aHandOffIsGivenOnce(on kind: RedisDeployment.Kind) async throws {
        try await with(kind) { setting in
            let key = ResultTier.handOffKey(for: try #require(ResultKey(Self.key)))
            _ = try await setting.tier.handOff(Self.body, Self.facts(Self.body, .webp), as: key, for: 600)
            // Looking does not take it.
            for _ in 0..<2 {
                let head = try await setting.ask("HEAD", key)
                #expect(head.status == 200 && head.headers["cache-control"] == "no-store")
                #expect(head.headers["content-length"] == "\(Self.body.count)")
            }
            let answer = try await setting.get(key, "Range: bytes=0-3\r\nIf-None-Match: *\r\n")
            #expect(answer.status == 200 && answer.body == Self.body)
            #expect(answer.headers["content-type"] == "image/webp" && answer.headers["cache-control"] == "no-store")
            #expect(answer.headers["etag"] == nil && answer.headers["accept-ranges"] == nil)
            #expect(try await setting.get(key).status == 404)
            #expect(try await setting.ask("HEAD", key).status == 404)
        }
    }

    @Test func ofManyReadersOneHasTheHandOff() async throws {
        try await with { setting in
            let key = ResultTier.handOffKey(for: try #require(ResultKey(Self.key)))
            _ = try await setting.tier.handOff(Self.body, Self.facts(Self.body), as: key, for: 600)
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<10 { group.addTask { try await setting.get(key).status } }
                return try await group.reduce(into: [Int]()) { $0.append($1) }
            }
            #expect(statuses.sorted() == [200] + Array(repeating: 404, count: 9))
        }
    }

    @Test(arguments: [(ImageFormat.svg, "image/svg+xml", "svg"), (.pdf, "application/pdf", "pdf")])
    func documentsCannotRunScript(_ format: ImageFormat, _ type: String, _ ending: String) async throws {
        try await with { setting in
            _ = try await setting.tier.store(
                Self.body, Self.facts(Self.body, format), as: Self.key, for: 600, by: .response)
            for headers in ["", "Range: bytes=0-3\r\n"] {
                let answer = try await setting.get(Self.key, headers)
                #expect(answer.headers["content-type"] == type)
                #expect(answer.headers["content-disposition"] == "attachment; filename=\"image.\(ending)\"")
                #expect(answer.headers["content-security-policy"]?.contains("sandbox") == true)
                #expect(answer.headers["x-content-type-options"] == "nosniff")
            }
        }
    }

    @Test func cachesKeepNoLongerThanTheReaderMayHaveIt() async throws {
        let urlKeys = ["1": [UInt8](repeating: 1, count: 32)]
        let access = AccessOptions.with {
            $0.keys = [APIKey(name: "k", secret: "k", scopes: [.read])]
            ($0.urlKeys, $0.requiresExpiry) = (urlKeys, false)
        }
        try await with(.server, access) { setting in
            _ = try await setting.tier.store(
                Self.body, Self.facts(Self.body), as: Self.key, for: 100_000, by: .response)
            let client = try RawClient(setting.port)
            #expect(try await setting.get(Self.key).status == 401)
            let private_ = try await setting.get(Self.key, "X-API-Key: k\r\n")
            #expect(private_.headers["cache-control"]?.hasPrefix("private, max-age=99") == true)
            let signer = URLSigner(keys: urlKeys, requiresExpiry: false)
            let now = Timestamp.now.milliseconds / 1000
            let short = try #require(signer.sign(setting.target(Self.key), keyId: "1", expires: now + 1000))
            let signed = try await client.get(short)
            #expect(signed.status == 200 && signed.body == Self.body)
            #expect(signed.headers["cache-control"]?.hasPrefix("public, max-age=") == true)
            #expect((1...1000).contains(try maxAge(signed)))
            let endless = try #require(signer.sign(setting.target(Self.key), keyId: "1", expires: nil))
            #expect(try await client.get(endless).headers["cache-control"]?.hasPrefix("public, max-age=99") == true)
        }
    }

    /// What is kept for a moment is answered as what Redis is asked for, whoever asks and for whatever.
    @Test func whatIsKeptIsAnsweredAsWhatIsNot() async throws {
        let urlKeys = ["1": [UInt8](repeating: 1, count: 32)]
        let access = AccessOptions.with {
            $0.keys = [APIKey(name: "k", secret: "k", scopes: [.read])]
            ($0.urlKeys, $0.requiresExpiry) = (urlKeys, false)
            ($0.origins, $0.limits.concurrency) = (["https://a.example"], 1)
        }
        var shelf = ShelfOptions()
        shelf.time = .seconds(500)
        let small = Self.body
        let large = [UInt8](repeating: 7, count: HTTPServer.SharedResponse.mostBytes + 1)
        for body in [small, large] {
            var answers: [[RawClient.Answer]] = []
            for options in [ShelfOptions.none, shelf] {
                try await with(.server, access, shelf: options) { setting in
                    _ = try await setting.tier.store(body, Self.facts(body), as: Self.key, for: 1000, by: .response)
                    let signer = URLSigner(keys: urlKeys, requiresExpiry: false)
                    let signed = try #require(signer.sign(setting.target(Self.key), keyId: "1", expires: nil))
                    let client = try RawClient(setting.port)
                    let key = "X-API-Key: k\r\n"
                    let tag = try #require(try await client.get(setting.target(Self.key), key).headers["etag"])
                    var all: [RawClient.Answer] = []
                    for _ in 0..<2 {
                        for headers in [
                            "", "Range: bytes=1-3\r\n", "Range: bytes=\(body.count)-\r\n", "If-None-Match: \(tag)\r\n",
                            "If-None-Match: \"b\"\r\n", "If-Range: \"b\"\r\nRange: bytes=1-3\r\n",
                            "Origin: https://a.example\r\n", "Origin: https://b.example\r\n",
                        ] {
                            for method in ["GET", "HEAD"] {
                                all.append(try await client.ask(method, setting.target(Self.key), key + headers))
                                all.append(try await client.ask(method, signed, headers))
                            }
                        }
                        all.append(try await client.get(setting.target(Self.key)))
                    }
                    answers.append(all)
                }
            }
            for (other, kept) in zip(answers[0], answers[1]) {
                #expect(other.status == kept.status && other.body == kept.body)
                // A second may have begun since.
                let changing: Set = ["date", "cache-control"]
                #expect(
                    other.headers.filter { !changing.contains($0.key) }
                        == kept.headers.filter { !changing.contains($0.key) })
                #expect(
                    other.headers["cache-control"]?.prefix { $0 != "=" }
                        == kept.headers["cache-control"]?.prefix { $0 != "=" })
                if other.status == 200 { #expect(abs(try maxAge(other) - maxAge(kept)) < 300) }
            }
        }
    }

    @Test func withoutRedisTheyCannotBeHadNow() async throws {
        var settings = RedisSettings()
        (settings.commandTimeout, settings.connectTimeout, settings.outageGrace) = (.seconds(1), .seconds(1), .zero)
        try await with(.server, AccessOptions(), settings) { setting in
            _ = try? await setting.tier.store(Self.body, Self.facts(Self.body), as: Self.key, for: 600, by: .response)
            await setting.server.stop()
            try await until("the connection is lost") { try await setting.get(Self.key).status == 503 }
            for method in ["GET", "HEAD"] {
                let answer = try await setting.ask(method, Self.key)
                #expect(answer.status == 503 && answer.headers["retry-after"] == "1")
            }
            let handOff = ResultTier.handOffKey(for: try #require(ResultKey(Self.key)))
            let answer = try await setting.get(handOff)
            #expect(answer.status == 503 && !answer.text.contains("127.0.0.1"))
        }
    }

    @Test func whatRedisCannotTellIsNoMiss() async throws {
        try await with { setting in
            _ = try await setting.redis.send(["SET", .string(Self.key), "a string"])
            #expect(try await setting.get(Self.key).status == 503)
        }
    }
}

extension ShelfOptions {
    /// Redis is asked each time.
    fileprivate static var none: ShelfOptions {
        var options = ShelfOptions()
        options.time = .zero
        return options
    }
}
