import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonGateway

/// `/v1/images`: results in Redis, served over HTTP.
@Suite(.limitedParallelism) struct ImageRouteTests {
    @Test(arguments: RedisDeployment.Kind.allCases)
    func servesImagesWithTheirMetadata(on kind: RedisDeployment.Kind) async throws {
        try await ImageFixture.with(kind) { fixture in
            let metadata = ImageFixture.metadata(ImageFixture.body)
            _ = try await fixture.cache.store(
                ImageFixture.body, metadata, as: ImageFixture.key, for: 600, by: .response)
            let answer = try await fixture.get(ImageFixture.key)
            #expect(answer.status == 200 && answer.body == ImageFixture.body)
            #expect(answer.headers["content-type"] == "image/png")
            #expect(answer.headers["etag"] == "\"\(metadata.sha256)\"")
            #expect(answer.headers["accept-ranges"] == "bytes")
            #expect(answer.headers["content-length"] == "\(ImageFixture.body.count)")
            #expect(answer.headers["cross-origin-resource-policy"] == "cross-origin")
            #expect(answer.headers["content-disposition"] == nil)
            #expect(answer.headers["halcyon-image-size"] == "4x3")
            #expect(answer.headers["cache-control"]?.hasPrefix("public, max-age=") == true)
            // `max-age` is the remaining TTL in Redis.
            let left = try await fixture.redis.send(["PTTL", .string(ImageFixture.key)]).integer ?? 0
            #expect((left / 1000...600).contains(try ImageFixture.maxAge(answer)))

            let head = try await fixture.ask("HEAD", ImageFixture.key)
            #expect(head.status == 200)
            for name in [
                "content-type", "etag", "accept-ranges", "content-length", "cross-origin-resource-policy",
                "halcyon-image-size",
            ] {
                #expect(head.headers[name] == answer.headers[name])
            }
            // The entity tag changes with the bytes.
            _ = try await fixture.cache.store(
                [1, 2], ImageFixture.metadata([1, 2]), as: ImageFixture.key, for: 600, by: .response)
            #expect(try await fixture.get(ImageFixture.key).headers["etag"] != answer.headers["etag"])
        }
    }

    @Test func servesLargeImagesWhole() async throws {
        try await ImageFixture.with { fixture in
            let large = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 8) }
            _ = try await fixture.cache.store(
                large, ImageFixture.metadata(large), as: ImageFixture.key, for: 600, by: .response)
            let answer = try await fixture.get(ImageFixture.key)
            #expect(answer.body == large && answer.headers["content-length"] == "3000000")
            let part = try await fixture.get(ImageFixture.key, "Range: bytes=1000000-\r\n")
            #expect(part.status == 206 && part.body.elementsEqual(large[1_000_000...]))
            #expect(try await fixture.ask("HEAD", ImageFixture.key).headers["content-length"] == "3000000")
        }
    }

    @Test func respondsWith304WhenTheTagMatches() async throws {
        try await ImageFixture.with { fixture in
            let tag = "\"\(ImageFixture.metadata(ImageFixture.body).sha256)\""
            _ = try await fixture.cache.store(
                ImageFixture.body, ImageFixture.metadata(ImageFixture.body), as: ImageFixture.key, for: 600,
                by: .response)
            for value in [tag, "W/\(tag)", "\"x\", \(tag)", "*"] {
                for method in ["GET", "HEAD"] {
                    let answer = try await fixture.ask(method, ImageFixture.key, "If-None-Match: \(value)\r\n")
                    #expect(answer.status == 304 && answer.headers["etag"] == tag && answer.body.isEmpty)
                    #expect((500...600).contains(try ImageFixture.maxAge(answer)))
                    #expect(answer.headers["content-type"] == nil)
                }
            }
            let other = try await fixture.get(ImageFixture.key, "If-None-Match: \"x\"\r\n")
            #expect(other.status == 200 && other.body == ImageFixture.body)
            // A missing image is a 404 even if the client has it.
            await #expect(throws: Never.self) {
                _ = try await fixture.redis.send(["DEL", .string(ImageFixture.key)])
            }
            #expect(try await fixture.get(ImageFixture.key, "If-None-Match: *\r\n").status == 404)
        }
    }

    /// A client that loads an image in parts must not mix two images.
    @Test func respondsWith412WhenTheTagDoesNotMatch() async throws {
        try await ImageFixture.with { fixture in
            let tag = "\"\(ImageFixture.metadata(ImageFixture.body).sha256)\""
            _ = try await fixture.cache.store(
                ImageFixture.body, ImageFixture.metadata(ImageFixture.body), as: ImageFixture.key, for: 600,
                by: .response)
            let range = "Range: bytes=0-3\r\n"
            for value in ["\"x\"", "W/\(tag)"] {
                for lines in ["", range, "If-None-Match: \(tag)\r\n"] {
                    let answer = try await fixture.get(ImageFixture.key, "If-Match: \(value)\r\n" + lines)
                    #expect(answer.status == 412 && answer.headers["cache-control"] == "no-store")
                    #expect(answer.text.contains("/problems/precondition-failed"))
                }
                #expect(try await fixture.ask("HEAD", ImageFixture.key, "If-Match: \(value)\r\n").status == 412)
            }
            for value in [tag, "\"x\", \(tag)", "*"] {
                let line = "If-Match: \(value)\r\n"
                #expect(try await fixture.get(ImageFixture.key, line).body == ImageFixture.body)
                #expect(try await fixture.get(ImageFixture.key, line + range).status == 206)
                #expect(try await fixture.get(ImageFixture.key, line + "If-None-Match: \(tag)\r\n").status == 304)
            }
            _ = try await fixture.redis.send(["DEL", .string(ImageFixture.key)])
            #expect(try await fixture.get(ImageFixture.key, "If-Match: *\r\n").status == 404)
        }
    }

    @Test func servesRanges() async throws {
        try await ImageFixture.with { fixture in
            let tag = "\"\(ImageFixture.metadata(ImageFixture.body).sha256)\""
            let count = ImageFixture.body.count
            _ = try await fixture.cache.store(
                ImageFixture.body, ImageFixture.metadata(ImageFixture.body), as: ImageFixture.key, for: 600,
                by: .response)
            for (range, part) in [("0-3", 0..<4), ("4-", 4..<count), ("-5", count - 5..<count), ("0-99999", 0..<count)]
            {
                for condition in ["", "If-Range: \(tag)\r\n"] {
                    let answer = try await fixture.get(ImageFixture.key, "Range: bytes=\(range)\r\n\(condition)")
                    #expect(answer.status == 206 && answer.body.elementsEqual(ImageFixture.body[part]))
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
                let answer = try await fixture.get(ImageFixture.key, headers)
                #expect(answer.status == 200 && answer.body == ImageFixture.body)
            }
            let none = try await fixture.get(ImageFixture.key, "Range: bytes=\(count)-\r\n")
            #expect(none.status == 416 && none.headers["content-range"] == "bytes */\(count)")
            #expect(none.headers["content-type"] == "application/problem+json")
            // Ranges apply to GET only, and If-None-Match takes precedence over them.
            #expect(try await fixture.ask("HEAD", ImageFixture.key, "Range: bytes=0-3\r\n").status == 200)
            #expect(
                try await fixture.get(ImageFixture.key, "Range: bytes=0-3\r\nIf-None-Match: \(tag)\r\n").status == 304)
        }
    }

    @Test func servesNoOtherRedisKeys() async throws {
        try await ImageFixture.with { fixture in
            _ = try await fixture.cache.store(
                ImageFixture.body, ImageFixture.metadata(ImageFixture.body), as: ImageFixture.key, for: 600,
                by: .response)
            let secret = String(repeating: "2c", count: 16)
            // Each of these keys holds a copy of an image.
            let others = [
                "halcyon:{\(ImageFixture.source)}:source", "halcyon:{\(ImageFixture.source)}:results",
                "halcyon:{\(ImageFixture.source)}:fences",
                "halcyon:{\(ImageFixture.source)}:lease:\(secret)", "halcyon:{\(ImageFixture.source)}:other:\(secret)",
                "secret",
                "halcyon:{\(ImageFixture.source)}:\(secret):handoff:\(secret)",
                "halcyon:{\(ImageFixture.source)}:handoff:\(secret)0",
                "halcyon:{\(ImageFixture.source)}:handoff:",
                "halcyon:{\(ImageFixture.source)}:handoff:handoff:\(secret)",
                "halcyon:{\(ImageFixture.source)}:\(secret)0",
                "halcyon:{\(ImageFixture.source.uppercased())}:\(secret)",
                "other:{\(ImageFixture.source)}:\(secret)", "halcyon:\(ImageFixture.source):\(secret)",
                "halcyon:{clock}",
                "budget:",
            ]
            for other in others {
                _ = try await fixture.redis.send(["COPY", .string(ImageFixture.key), .string(other)])
            }
            let before = try await fixture.calls(["hmget", "evalsha", "hget"])
            for other in others {
                #expect(try await fixture.get(other).status == 404, "\(other)")
                #expect(try await fixture.ask("HEAD", other).status == 404, "\(other)")
            }
            #expect(try await fixture.get("").status == 404)
            #expect(try await fixture.calls(["hmget", "evalsha", "hget"]) == before)
        }
    }

    @Test func missingExpiredAndIncompleteImagesAre404() async throws {
        try await ImageFixture.with { fixture in
            let answer = try await fixture.get(ImageFixture.key)
            #expect(answer.status == 404 && answer.headers["cache-control"] == "no-store")
            #expect(try await fixture.ask("HEAD", ImageFixture.key).status == 404)
            _ = try await fixture.cache.store(
                ImageFixture.body, ImageFixture.metadata(ImageFixture.body), as: ImageFixture.key, for: 0.05,
                by: .response
            )
            try await until("the image expires") { try await fixture.get(ImageFixture.key).status == 404 }
            // Metadata of another version.
            _ = try await fixture.redis.send(["HSET", .string(ImageFixture.key), "body", "x", "facts", "{}"])
            #expect(try await fixture.get(ImageFixture.key).status == 404)
            // Metadata without bytes.
            _ = try await fixture.cache.store(
                ImageFixture.body, ImageFixture.metadata(ImageFixture.body), as: ImageFixture.key, for: 600,
                by: .response)
            _ = try await fixture.redis.send(["HDEL", .string(ImageFixture.key), "body"])
            #expect(try await fixture.get(ImageFixture.key).status == 404)
        }
    }

    @Test func readsDoNotChangeRedis() async throws {
        try await ImageFixture.with { fixture in
            _ = try await fixture.cache.store(
                ImageFixture.body, ImageFixture.metadata(ImageFixture.body), as: ImageFixture.key, for: 600,
                by: .response)
            func keys() async throws -> Set<String> {
                Set((try await fixture.redis.send(["KEYS", "*"]).array ?? []).compactMap(\.string))
            }
            func fields() async throws -> RedisValue {
                try await fixture.redis.send([
                    "HMGET", .string(ImageFixture.key), "body", "facts", "expiresAt", "storedAt", "rule", "fence",
                ])
            }
            let (before, stored) = (try await keys(), try await fields())
            let end = try await fixture.redis.send(["PEXPIRETIME", .string(ImageFixture.key)])
            _ = try await fixture.get(ImageFixture.key)
            _ = try await fixture.ask("HEAD", ImageFixture.key)
            #expect(try await keys() == before)
            #expect(try await fields() == stored)
            #expect(try await fixture.redis.send(["PEXPIRETIME", .string(ImageFixture.key)]) == end)
        }
    }

    @Test(arguments: [(ImageFormat.svg, "image/svg+xml", "svg"), (.pdf, "application/pdf", "pdf")])
    func documentsCannotRunScript(_ format: ImageFormat, _ type: String, _ ending: String) async throws {
        try await ImageFixture.with { fixture in
            _ = try await fixture.cache.store(
                ImageFixture.body, ImageFixture.metadata(ImageFixture.body, format), as: ImageFixture.key, for: 600,
                by: .response)
            for headers in ["", "Range: bytes=0-3\r\n"] {
                let answer = try await fixture.get(ImageFixture.key, headers)
                #expect(answer.headers["content-type"] == type)
                #expect(answer.headers["content-disposition"] == "attachment; filename=\"image.\(ending)\"")
                #expect(answer.headers["content-security-policy"]?.contains("sandbox") == true)
                #expect(answer.headers["x-content-type-options"] == "nosniff")
            }
        }
    }
}
