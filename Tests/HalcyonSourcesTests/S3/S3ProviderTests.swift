import Concurrency
import HalcyonModel
import TestSupport
import Testing

@testable import HalcyonSources

/// Objects of a server that verifies every signature.
@Suite(.limitedParallelism) struct S3ProviderTests {
    private static let objects: [String: [UInt8]] = [
        "pictures/a.jpg": Array("first".utf8), "pictures/a b/ü+%'(~).jpg": Array("tricky".utf8),
        "pictures/v.1": Array("old".utf8), "pictures/v.2": Array("new".utf8),
        "pictures/photo": (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) },
        "public/a.jpg": Array("for all".utf8), "pictures/large": [UInt8](repeating: 7, count: 1001),
    ]

    private static func with(
        _ change: (inout SourceOptions, S3Server) throws -> Void = { _, _ in },
        _ body: (SourceLoader, S3Server) async throws -> Void
    ) async throws {
        let server = try await S3Server.start(objects)
        let result: Result<Void, any Error>
        do {
            result = .success(
                try await withLoader({ options in
                    options.s3.endpoint = try? WebURL("http://127.0.0.1:\(server.port)")
                    options.s3.region = S3Server.region
                    options.s3.credentials = .init(accessKey: S3Server.accessKey, secretKey: S3Server.secretKey)
                    try? change(&options, server)
                }) { try await body($0, server) })
        } catch {
            result = .failure(error)
        }
        await server.stop()
        try result.get()
    }

    private static func text(_ loaded: LoadedSource) -> String { String(decoding: loaded.body, as: UTF8.self) }

    /// No address is allowed except that of the server, because the operator configured it as the endpoint.
    @Test func loadsObjectsWithSignedRequests() async throws {
        try await Self.with { loader, server in
            let loaded = try await loader.load(try Source("s3://pictures/a.jpg"))
            #expect(Self.text(loaded) == "first")
            #expect(loaded.status == 200 && loaded.validators.etag != nil && loaded.validators.lastModified != nil)
            #expect(
                ResultTTL(maxAge: 0, headers: loaded.headers, completedAt: loaded.completedAt) == .seconds(600))
            let tricky = try await loader.load(try Source("s3://pictures/a%20b/%C3%BC+%25'%28~).jpg"))
            #expect(Self.text(tricky) == "tricky")
            #expect(
                server.requests.map { $0.split(separator: " ")[2] } == [
                    "/pictures/a.jpg", "/pictures/a%20b/%C3%BC%2B%25%27%28~%29.jpg",
                ])
        }
    }

    @Test func listsObjectsByPages() async throws {
        try await Self.with { loader, _ in
            let prefix = try S3Prefix("s3://pictures/")
            var (keys, last): ([String], String?) = ([], nil)
            while true {
                let page = try await loader.list(prefix, after: last, count: 2)
                keys += page.objects.map(\.key)
                last = page.objects.last?.key
                #expect(page.objects.allSatisfy { $0.bytes > 0 && $0.changedAt > 1_700_000_000 && !$0.isFolder })
                if !page.isTruncated { break }
                #expect(page.objects.count == 2)
            }
            #expect(keys == ["a b/ü+%'(~).jpg", "a.jpg", "large", "photo", "v"])
            let sources = keys.map { prefix.source(of: $0) }
            #expect(try S3Source(sources[0]).key == keys[0])
            let part = try await loader.list(try S3Prefix("s3://pictures/a%20b/"), after: nil, count: 1000)
            #expect(part.objects.map(\.key) == [keys[0]] && !part.isTruncated)
            let none = try await loader.list(try S3Prefix("s3://pictures/nothing"), after: nil, count: 1000)
            #expect(none.objects.isEmpty && !none.isTruncated)
        }
    }

    private static func page(_ keys: [String], isTruncated: Bool, next: String? = nil) -> [RawOrigin.Step] {
        let objects = keys.map { "<Contents><Key>\($0)</Key><Size>1</Size></Contents>" }.joined()
        let token = next.map { "<NextContinuationToken>\($0)</NextContinuationToken>" } ?? ""
        let list = "<IsTruncated>\(isTruncated)</IsTruncated>\(token)\(objects)"
        return RawOrigin.answer("200 OK", [], "<ListBucketResult>\(list)</ListBucketResult>")
    }

    private static func list(from origin: RawOrigin) async throws -> S3ObjectPage {
        try await withLoader({ $0.s3.endpoint = try? WebURL("http://127.0.0.1:\(origin.port)") }) { loader in
            try await loader.list(try S3Prefix("s3://pictures/"), after: "a", count: 2)
        }
    }

    /// A store may return no objects although more follow.
    @Test func continuesListsAfterPagesWithoutObjects() async throws {
        let origin = RawOrigin { request in
            let query = request.path.drop { $0 != "?" }
            if query.hasPrefix("?continuation-token=two&") { return Self.page(["b"], isTruncated: true, next: "three") }
            if query.hasPrefix("?continuation-token=one&") { return Self.page([], isTruncated: true, next: "two") }
            return Self.page([], isTruncated: true, next: "one")
        }
        let page = try await Self.list(from: origin)
        #expect(page.objects.map(\.key) == ["b"] && page.isTruncated)
        #expect(origin.requests.count == 3)
        try await origin.stop()
    }

    /// A list that ends too early would hide objects.
    @Test(arguments: [nil, "same"] as [String?]) func rejectsListsThatCannotBeContinued(next: String?) async throws {
        let origin = RawOrigin { _ in Self.page([], isTruncated: true, next: next) }
        let error = await #expect(throws: JobError.self) { _ = try await Self.list(from: origin) }
        #expect(error?.isRetryable == true)
        try await origin.stop()
    }

    @Test func listsFailWithTheReason() async throws {
        try await Self.with({ options, _ in options.s3.credentials?.secretKey = "wrong" }) { loader, _ in
            await #expect {
                _ = try await loader.list(try S3Prefix("s3://pictures/"), after: nil, count: 2)
            } throws: { error in
                (error as? JobError)?.code == .forbidden
            }
        }
        try await Self.with { loader, server in
            await #expect {
                _ = try await loader.list(try S3Prefix("s3://nowhere/"), after: nil, count: 2)
            } throws: { error in
                (error as? JobError)?.code == .notFound && "\(error)".contains("NoSuchBucket for s3://nowhere/")
            }
            server.fail(with: .slowDown)
            await #expect {
                _ = try await loader.list(try S3Prefix("s3://pictures/"), after: nil, count: 2)
            } throws: { error in
                (error as? JobError)?.isRetryable == true
            }
        }
    }

    @Test func loadsTheRequestedVersion() async throws {
        try await Self.with { loader, server in
            let versions = server.versions("pictures", "v")
            #expect(versions.count == 2)
            for (version, text) in zip(versions, ["old", "new"]) {
                let loaded = try await loader.load(try Source("s3://pictures/v?versionId=\(version)"))
                #expect(Self.text(loaded) == text)
            }
            let text = try await Self.text(loader.load(try Source("s3://pictures/v")))
            #expect(text == "new")
        }
    }

    @Test func acceptsTemporaryCredentials() async throws {
        try await Self.with({ options, _ in
            options.s3.credentials = .init(
                accessKey: "LENT", secretKey: "lent-secret", sessionToken: "lent/token+==")
        }) { loader, _ in
            let text = try await Self.text(loader.load(try Source("s3://pictures/a.jpg")))
            #expect(text == "first")
        }
    }

    @Test func supportsVirtualHostedStyle() async throws {
        try await Self.with({ options, server in
            options.s3.endpoint = try WebURL("http://localhost:\(server.port)/")
            options.s3.style = .virtual
        }) { loader, server in
            let text = try await Self.text(loader.load(try Source("s3://pictures/a%20b/%C3%BC+%25'%28~).jpg")))
            #expect(text == "tricky")
            #expect(server.requests.first?.contains(" pictures.localhost:\(server.port) /a%20b/") == true)
        }
    }

    @Test func loadsOnlyPublicObjectsWithoutCredentials() async throws {
        try await Self.with({ options, _ in options.s3.credentials = nil }) { loader, _ in
            let text = try await Self.text(loader.load(try Source("s3://public/a.jpg")))
            #expect(text == "for all")
            let failure = try await loader.failure(of: "s3://pictures/a.jpg")
            #expect(failure?.code == .forbidden)
        }
    }

    @Test func wrongSecretKeyFailsAsForbidden() async throws {
        try await Self.with({ options, _ in options.s3.credentials?.secretKey += "x" }) { loader, _ in
            let failure = try #require(try await loader.failure(of: "s3://pictures/a.jpg"))
            #expect(failure.code == .forbidden && failure.message.contains("SignatureDoesNotMatch"), "\(failure)")
        }
    }

    @Test func mapsS3ErrorsToJobErrors() async throws {
        try await Self.with({ options, _ in options.maximumBytes = 1000 }) { loader, _ in
            for (path, code, isRetryable, word) in [
                ("pictures/none", JobErrorCode.notFound, false, "NoSuchKey"),
                ("nothere/a", .notFound, false, "NoSuchBucket"),
                ("pictures/access-denied", .forbidden, false, "AccessDenied"),
                ("pictures/slow-down", .httpError, true, "SlowDown"),
                ("pictures/internal-error", .httpError, true, "500 InternalError"),
                ("pictures/request-timeout", .httpError, true, "400 RequestTimeout"),
                (
                    "pictures/moved", .providerError, false,
                    "sources.s3.region must be the bucket's, which is eu-central-1"
                ),
                ("pictures/large", .tooLarge, false, "sources.maximumBytes"),
            ] {
                let failure = try #require(try await loader.failure(of: "s3://\(path)"), "\(path)")
                #expect(failure.code == code && failure.isRetryable == isRetryable, "\(path): \(failure)")
                #expect(failure.message.contains(word), "\(failure)")
            }
        }
    }

    @Test func unchangedObjectIsNotTransferredAgain() async throws {
        try await Self.with { loader, server in
            let source = try Source("s3://pictures/a.jpg")
            let known = try await loader.load(source).validators
            guard case .notModified = try await loader.load(source, ifNoneMatch: known) else {
                Issue.record("the unchanged object was sent again")
                return
            }
            guard case .loaded(let loaded) = try await loader.load(source, ifNoneMatch: Validators(etag: "\"other\""))
            else {
                Issue.record("the object was not sent")
                return
            }
            #expect(Self.text(loaded) == "first")
            #expect(server.requests.map { $0.hasSuffix(" -") } == [true, false, false])
        }
    }

    // MARK: Interrupted transfers

    /// Returns a proxy of the server that closes each connection after `count` bytes. It reads the whole response of
    /// the server first.
    private static func truncatingProxy(_ server: S3Server, after count: Int) -> RawOrigin {
        RawOrigin { request in
            let answer = (try? Exchange.bytes("\(request.head)\r\n\r\n", port: server.port)) ?? []
            return answer.count <= count
                ? [.bytes(answer), .close]
                : [.bytes(Array(answer.prefix(count))), .pause(.milliseconds(50)), .close]
        }
    }

    /// The server verifies the signature of each request: ranges and conditions do not break it.
    @Test func resumesInterruptedTransfers() async throws {
        let server = try await S3Server.start(Self.objects)
        let proxy = Self.truncatingProxy(server, after: 40_000)
        try await withLoader { options in
            options.s3.endpoint = try? WebURL(proxy.url("/"))
            options.s3.region = S3Server.region
            options.s3.credentials = .init(accessKey: S3Server.accessKey, secretKey: S3Server.secretKey)
        } _: { loader in
            let loaded = try await loader.load(try Source("s3://pictures/photo"))
            #expect(loaded.body == Self.objects["pictures/photo"] && loaded.status == 200)
            let etag = try #require(loaded.validators.etag)
            let rests = proxy.requests.dropFirst().map { $0.head.lowercased() }
            #expect(proxy.requests.count == 3 && !proxy.requests[0].head.lowercased().contains("range:"))
            for rest in rests {
                #expect(rest.contains("if-match: \(etag.lowercased())") && rest.contains("range: bytes="))
                #expect(rest.contains("authorization: aws4-hmac-sha256"))
            }
        }
        try await proxy.stop()
        await server.stop()
    }

    @Test func restartsWhenObjectChangesDuringTransfer() async throws {
        let (old, new) = ([UInt8](repeating: 1, count: 1000), [UInt8](repeating: 2, count: 900))
        let number = Lock(0)
        let store = RawOrigin { request in
            let count = number.withLock { number in
                number += 1
                return number
            }
            if count == 1 {
                return [
                    .text("HTTP/1.1 200 OK\r\nETag: \"old\"\r\nContent-Length: 1000\r\n\r\n"),
                    .bytes(Array(old.prefix(400))), .pause(.milliseconds(50)), .close,
                ]
            }
            if request.head.lowercased().contains("if-match:") {
                return RawOrigin.answer("412 Precondition Failed", [], "<Error><Code>PreconditionFailed</Code></Error>")
            }
            return [.text("HTTP/1.1 200 OK\r\nETag: \"new\"\r\nContent-Length: 900\r\n\r\n"), .bytes(new)]
        }
        try await withLoader { options in
            options.s3.endpoint = try? WebURL(store.url("/"))
        } _: { loader in
            let loaded = try await loader.load(try Source("s3://pictures/photo"))
            #expect(loaded.body == new && loaded.validators.etag == "\"new\"")
        }
        #expect(store.requests.count == 3)
        try await store.stop()
    }

    @Test func trustsTheEndpointOnlyForS3UnlessDenied() async throws {
        try await Self.with({ options, server in
            options.policy = AddressPolicy(deny: ["127.0.0.1"])
        }) { loader, server in
            let failure = try await loader.failure(of: "s3://pictures/a.jpg")
            #expect(failure?.code == .blockedAddress)
            #expect(server.requests.isEmpty)
        }
        try await Self.with { loader, server in
            let failure = try await loader.failure(of: "http://127.0.0.1:\(server.port)/public/a.jpg")
            #expect(failure?.code == .blockedAddress)
        }
    }
}
