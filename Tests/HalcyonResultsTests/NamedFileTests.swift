import Concurrency
import Formats
import HalcyonModel
import TestSupport
import Testing

@testable import HalcyonResults

/// Results whose files have names by a template.
@Suite(.limitedParallelism) struct NamedFileTests {
    private static let template = FileNameTemplate("{source.path}/{width}x{height}.{format}")

    /// Runs `body` with a store that names files, and a function that makes results of the web source `a/cat.jpg`.
    private static func with(
        _ kind: StorageKind, _ change: (inout ResultStoreOptions) -> Void = { _ in },
        _ body: (ResultStore, (ResultKey, String, Int) -> StoredResult) async throws -> Void
    ) async throws {
        try await kind.with { options in
            var options = options
            options.names = template
            options.publicURL = "https://images.test"
            change(&options)
            try await ResultStore.with(options) { store in
                try await body(store) { key, body, width in
                    var result = Samples.result(key, body: body, fence: Samples.now - 1_000_000)
                    result.metadata.width = width
                    result.source = Samples.source("cat.jpg")
                    return result
                }
            }
        }
    }

    private static func files(_ store: ResultStore) async -> [String] {
        await store.allNames().filter { $0.hasPrefix(ObjectName.files) }.sorted()
    }

    private static func ending(_ key: ResultKey) -> String {
        "-\(key.sourceHash.prefix(16))\(key.variantHash.prefix(16)).jpg"
    }

    @Test(arguments: StorageKind.allCases) func filesHaveNames(_ kind: StorageKind) async throws {
        try await Self.with(kind) { store, made async throws in
            let (one, two) = (Samples.key("cat.jpg"), Samples.key("cat.jpg", width: 20))
            // Two results with the same size, such as of two qualities.
            let results = [made(one, "one", 10), made(two, "two", 10)]
            for result in results { try await store.put(result) }
            for (key, body) in [(one, "one"), (two, "two")] {
                #expect(await store.find(key)?.body == Array(body.utf8))
                let name = "cat.jpg/10x8\(Self.ending(key))"
                #expect(await store.publicURL(of: key) == "https://images.test/\(name)")
                #expect(try await store.storage.read("files/\(name)", upTo: 100)?.body == Array(body.utf8))
            }
            #expect(await Self.files(store).count == 2)
            // A required result is not written twice.
            let written = store.metrics.written.value
            try await store.put(results[0])
            #expect(store.metrics.written.value == written)
        }
    }

    @Test(arguments: StorageKind.allCases, PurgeScope.Kind.allCases)
    func purgesDeleteFiles(_ kind: StorageKind, _ scope: PurgeScope.Kind) async throws {
        try await Self.with(kind) { store, made async throws in
            let key = Samples.key("cat.jpg", tenant: scope == .tenant ? "shop" : nil)
            var result = made(key, "picture", 10)
            if scope == .tenant { result.tenant = "shop" }
            try await store.put(result, tags: ["x"])
            let target: Purge.Target =
                switch scope {
                case .source: .source(Samples.source("cat.jpg"))
                case .key: .key(key)
                case .tag: .tag("x")
                case .tenant: .tenant("shop")
                }
            #expect(await store.publicURL(of: key) != nil)
            #expect(try await store.purge(Purge(target), at: Samples.now) == 1)
            #expect(await store.find(key) == nil)
            #expect(await store.publicURL(of: key) == nil)
            #expect(await Self.files(store).isEmpty)
        }
    }

    /// The source has another size now.
    @Test(arguments: StorageKind.allCases) func aNewNameReplacesTheOld(_ kind: StorageKind) async throws {
        try await Self.with(kind) { store, made async throws in
            let key = Samples.key("cat.jpg")
            try await store.put(made(key, "old", 10))
            try await store.put(made(key, "new", 12))
            #expect(await Self.files(store) == ["files/cat.jpg/12x8\(Self.ending(key))"])
            #expect(await store.find(key)?.body == Array("new".utf8))
            try await store.remove(key, of: made(key, "new", 12).rule)
            try await until("the result is removed") { await store.find(key) == nil }
            try await until("its file is removed") { await Self.files(store).isEmpty }
        }
    }

    /// Somebody else has changed a file, removed it, or changed where the result looks for it.
    @Test(arguments: StorageKind.allCases) func changedObjectsAreMisses(_ kind: StorageKind) async throws {
        try await Self.with(kind) { store, made async throws in
            let key = Samples.key("cat.jpg")
            let file = "files/cat.jpg/10x8\(Self.ending(key))"
            try await store.put(made(key, "picture", 10))
            let (pointer, name) = (
                try #require(try await store.storage.read(ObjectName.result(key), upTo: 1000)), ObjectName.result(key)
            )
            var foreign = StorageObject.marker()
            foreign.body = Array("pictore".utf8)
            try await store.storage.write(foreign, as: file, isDurable: true)
            #expect(await store.find(key) == nil)
            try await store.storage.remove([file])
            #expect(await store.find(key) == nil)
            #expect(await store.publicURL(of: key) == nil)
            for text in ["../../etc/passwd", "/etc/passwd", "a/../b", "", "a\n", String(repeating: "a", count: 1100)] {
                var changed = pointer
                changed.body = Array(text.utf8)
                try await store.storage.write(changed, as: name, isDurable: true)
                #expect(await store.find(key) == nil, "\(text)")
                #expect(await store.publicURL(of: key) == nil)
                #expect(try await store.file(of: key) == nil)
            }
            // It is made again.
            try await store.put(made(key, "picture", 10))
            #expect(await store.find(key)?.body == Array("picture".utf8))
        }
    }

    @Test func sweepsDeleteFiles() async throws {
        try await Self.with(.folder, { $0.budget = 100 }) { store, made async throws in
            var short = made(Samples.key("cat.jpg"), "short", 10)
            short.expiresAt = Timestamp.now.milliseconds + 500
            try await store.put(short)
            try await until("the expired result is deleted") {
                await store.sweep() == SweepReport(results: 0, bytes: 0)
            }
            #expect(await store.allNames().isEmpty)
            // A result counts with its file and the name of it.
            for width in 1...3 {
                try await store.put(
                    made(Samples.key("cat.jpg", width: width), String(repeating: "x", count: 20), width))
            }
            let report = try #require(await store.sweep())
            #expect(report.bytes <= 90 && report.evicted > 0)
            for width in 1...3 {
                let key = Samples.key("cat.jpg", width: width)
                let hasFile = await Self.files(store).contains { $0.hasSuffix(Self.ending(key)) }
                #expect(await (store.find(key) != nil) == hasFile)
            }
        }
    }
}

/// Names that templates give to files.
@Suite struct FileNameTemplateTests {
    private static let key = ResultKey("halcyon:{00112233445566778899aabbccddeeff}:ffeeddccbbaa99887766554433221100")!
    private static let hash = "0011223344556677ffeeddccbbaa9988"

    private static func name(_ template: String, _ source: Source) throws -> String {
        try #require(FileNameTemplate(template)).name(of: key, Samples.result().metadata, from: source)
    }

    @Test(arguments: [
        (
            "http://Example.org:8080/a/cat.jpg?w=1", "{source.host}/{source.path}/{width}x{height}.{format}",
            "example.org/a/cat.jpg/10x8-HASH.jpg"
        ),
        ("http://u:p@example.org/a/cat.jpg", "{source.host}/{source.path}", "example.org/a/cat-HASH.jpg"),
        ("http://example.org", "{source.path}.{format}", "index-HASH.jpg"),
        (
            "http://example.org/a", "{width}/{key}.{format}",
            "10/00112233445566778899aabbccddeeff-ffeeddccbbaa99887766554433221100.jpg"
        ),
        ("http://example.org/../../%2e%2E/%2Fetc//passwd/", "{source.path}/x", "_./_./_./etc/passwd/x-HASH"),
        ("http://example.org/caf%C3%A9%20%0a%00.png", "{source.path}", "caf_____-HASH.png"),
        ("http://example.org/%zz", "{source.path}", "_zz-HASH"),
        ("http://example.org/.htaccess", "{source.path}", "_htaccess-HASH"),
        ("http://example.org/a.record/b.draft", "{source.path}/{format}", "a.record_/b.draft_/jpg-HASH"),
        ("s3://pictures/2026/a%2Bb.jpg", "{source.host}/{source.path}", "pictures/2026/a_b-HASH.jpg"),
        ("initials:JD", "{source.host}/{source.path}/{width}.{format}", "initials/JD/10-HASH.jpg"),
        ("file:///srv/a.png", "{source.path}/{width}.{format}", "srv/a.png/10-HASH.jpg"),
    ]) func namesStayInTheirFolder(source: String, template: String, name: String) throws {
        let found = try Self.name(template, try Source(source))
        #expect(found == name.replacing("HASH", with: Self.hash) && FileNameTemplate.isName(found))
    }

    @Test func longNamesAreCut() throws {
        let source = try Source("http://example.org/" + String(repeating: "abcdefghi/", count: 300))
        for template in ["{source.path}/{width}.{format}", "{source.path}{source.path}", "{source.path}/{key}"] {
            let name = try Self.name(template, source)
            #expect(name.utf8.count <= 480 && name.contains(Self.hash) && FileNameTemplate.isName(name))
        }
        let segment = try Self.name("{source.path}/a", try Source("http://h/" + String(repeating: "a", count: 5000)))
        #expect(segment == String(repeating: "a", count: 150) + "/a-\(Self.hash)")
    }

    /// All jobs for a result have the same name for it.
    @Test func namesFollowTheIdentity() throws {
        let rules = [SourceIdentityRule("*?Signature")].compactMap(\.self)
        let names = try ["http://h/a.jpg?Signature=1", "http://h/a.jpg?Signature=2#x"].map {
            try Self.name("{source.host}/{source.path}", .web(WebURL($0).identified(by: rules)))
        }
        #expect(Set(names) == ["h/a-\(Self.hash).jpg"])
        let keyed = try ["http://h/a", "https://other/b"].map {
            try Self.name("{source.host}/{source.path}", .web(WebURL($0).named("cat 7")))
        }
        #expect(Set(keyed) == ["key/cat_7-\(Self.hash)"])
    }

    @Test(arguments: [
        "", "/a", "a/", "a//b", "../a", "a/../b", "./a", ".a", "a b", "a\n", "é", "{source}", "{width", "width}", "a?b",
        "a%20",
        "a.record", "a.draft", String(repeating: "a", count: 257),
    ]) func refused(template: String) { #expect(FileNameTemplate(template) == nil) }
}
