import HalcyonModel
import Testing

@testable import HalcyonSources

/// Providers registered by the host program.
@Suite struct CustomProviderTests {
    /// A provider that returns the reference as the body. Some references fail.
    struct Echo: CustomSourceProvider {
        var name = "echo"

        func fetch(_ reference: String, ifNoneMatch known: Validators?) async throws -> FetchResponse {
            switch reference {
            case "failure": throw JobError(.gone, "it was there once")
            case "error": throw Oops()
            case "inf", "-inf", "nan", "12.5":
                throw JobError(.httpError, "later", isRetryable: true, retryAfter: Double(reference))
            case "cancelled": throw CancellationError()
            default: .loaded(LoadedSource(body: Array(reference.utf8), lifetime: .seconds(60)))
            }
        }
    }

    struct Oops: Error {}

    private static func source(_ reference: String, name: String = "echo") throws -> Source {
        .custom(try CustomSource(name: name, reference: reference) { $1 })
    }

    @Test func loadsFromTheProviderWithTheName() async throws {
        try await withLoader(custom: [Echo()]) { loader in
            let loaded = try await loader.load(try Self.source("hello"))
            #expect(loaded.body == Array("hello".utf8))
            #expect(ResultTTL(maxAge: 0, headers: loaded.headers, completedAt: loaded.completedAt) == .seconds(60))
            #expect(try await loader.failure(of: try Self.source("a", name: "other"))?.code == .unsupportedSource)
        }
    }

    @Test func errorsNameTheProvider() async throws {
        try await withLoader(custom: [Echo()], { $0.maximumBytes = 10 }) { loader in
            for (reference, code, message) in [
                ("failure", JobErrorCode.gone, "echo: it was there once"), ("error", .providerError, "echo: Oops()"),
                ("more than ten bytes", .tooLarge, "echo: more than 10 bytes"),
                ("cancelled", .providerError, "echo: CancellationError()"),
            ] {
                let failure = try #require(try await loader.failure(of: try Self.source(reference)))
                #expect(failure.code == code && failure.message.hasPrefix(message), "\(failure)")
            }
        }
    }

    @Test(arguments: [("inf", 2_147_483_648), ("-inf", 0), ("nan", nil), ("12.5", 12.5)] as [(String, Double?)])
    func limitsTheRetryDelay(_ reference: String, seconds: Double?) async throws {
        try await withLoader(custom: [Echo()]) { loader in
            let failure = try #require(try await loader.failure(of: try Self.source(reference)))
            #expect(failure.retryAfter == seconds)
        }
    }

    @Test func cancelledTaskEndsAsCancelled() async throws {
        try await withLoader(custom: [Echo()]) { loader in
            let task = Task {
                while !Task.isCancelled { await Task.yield() }
                return try await loader.load(try Self.source("cancelled"))
            }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test func providersMayIgnoreValidators() async throws {
        try await withLoader(custom: [Echo()]) { loader in
            let answer = try await loader.load(try Self.source("hello"), ifNoneMatch: Validators(etag: "\"1\""))
            guard case .loaded(let loaded) = answer else {
                Issue.record("\(answer)")
                return
            }
            #expect(loaded.body == Array("hello".utf8))
        }
    }

    @Test(arguments: [
        ("", ProviderError.malformed("")), ("Echo", .malformed("Echo")), ("1a", .malformed("1a")),
        ("a b", .malformed("a b")),
        ("a:b", .malformed("a:b")), ("é", .malformed("é")), ("http", .builtIn("http")), ("s3", .builtIn("s3")),
        ("initials", .builtIn("initials")), ("video", .builtIn("video")), ("base64", .builtIn("base64")),
    ])
    func rejectsMalformedAndReservedNames(name: String, error: ProviderError) {
        #expect(throws: error) { try CustomProviders([Echo(name: name)]) }
    }

    @Test func rejectsDuplicateNames() throws {
        #expect(throws: ProviderError.doubled("echo")) { try CustomProviders([Echo(), Echo()]) }
        #expect(try CustomProviders([Echo(), Echo(name: "echo-2+a.b")]).names == ["echo", "echo-2+a.b"])
    }
}
