import Concurrency
import Formats
import HalcyonModel
import Telemetry
import TestSupport
import Testing

@testable import HalcyonResults

/// What a folder and a bucket have in common.
@Suite(.limitedParallelism) struct ObjectStorageTests {
    private func with(_ kind: StorageKind, _ body: (any ObjectStorage) async throws -> Void) async throws {
        try await kind.with { options in
            try await ResultStore.with(options, isStarted: false) { try await body($0.storage) }
        }
    }

    private func object(_ text: String) -> StorageObject {
        StorageObject(
            body: Array(text.utf8), mediaType: "image/png", record: Array("{\"é\":\"\(text)\"}".utf8),
            expiresAt: Timestamp.now.seconds + 100)
    }

    @Test(arguments: StorageKind.allCases) func readsWhatWasWritten(_ kind: StorageKind) async throws {
        try await with(kind) { storage in
            #expect(try await storage.read("results/aa/b", upTo: 100) == nil)
            #expect(try await storage.head("results/aa/b") == nil)
            for text in ["first", "the second, longer", ""] {
                try await storage.write(object(text), as: "results/aa/b", isDurable: true)
                let found = try #require(try await storage.read("results/aa/b", upTo: 100))
                #expect(found.body == Array(text.utf8) && found.record == object(text).record)
                let head = StorageHead(record: object(text).record, bytes: text.utf8.count)
                #expect(try await storage.head("results/aa/b") == head)
            }
            try await storage.remove(["results/aa/b", "results/aa/missing"])
            #expect(try await storage.read("results/aa/b", upTo: 100) == nil)
            try await storage.remove([])
        }
    }

    @Test(arguments: StorageKind.allCases) func listsByPrefixInOrderAndInPages(_ kind: StorageKind) async throws {
        try await with(kind) { storage in
            let names = ["a/x", "a/y", "a.b/z", "b/1", "b/2/3"]
            for name in names.shuffled() { try await storage.write(object(name), as: name, isDurable: true) }
            func list(_ prefix: String, _ last: String? = nil) async throws -> [String] {
                try await storage.list(prefix, after: last).map(\.name)
            }
            let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            #expect(try await list("") == sorted)
            #expect(try await list("a/") == ["a/x", "a/y"])
            #expect(try await list("a") == ["a.b/z", "a/x", "a/y"])
            #expect(try await list("b/2") == ["b/2/3"])
            #expect(try await list("c").isEmpty)
            for (place, name) in sorted.enumerated() {
                #expect(try await list("", name) == Array(sorted[(place + 1)...]))
            }
            #expect(try await list("a/", "a/x") == ["a/y"])
            let entry = try #require(try await storage.list("b/1", after: nil).first)
            #expect(entry.bytes == 3 && abs(entry.usedAt - Timestamp.now.seconds) < 100)
            #expect(entry.expiresAt == nil || abs(entry.expiresAt! - Timestamp.now.seconds - 100) < 60)
        }
    }

    @Test(arguments: StorageKind.allCases) func removesMoreThanAPage(_ kind: StorageKind) async throws {
        try await with(kind) { storage in
            let count = pageSize + 5
            // rclone answers 500 if several writes create a folder at the same time.
            try await storage.write(.marker(), as: "x/0", isDurable: true)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for part in 1...8 {
                    group.addTask {
                        for number in stride(from: part, to: count, by: 8) {
                            try await storage.write(.marker(), as: "x/\(number)", isDurable: true)
                        }
                    }
                }
                try await group.waitForAll()
            }
            let page = try await storage.list("x/", after: nil).map(\.name)
            #expect(page.count == pageSize)
            #expect(try await storage.list("x/", after: page.last).count == 5)
            try await storage.remove(page)
            #expect(try await storage.list("x/", after: nil).count == 5)
        }
    }

    @Test func removesTemporaryFilesOfCrashes() async throws {
        let folder = TemporaryFolder("results")
        for (draftLifetime, isLeft) in [(3600, true), (0, false)] {
            let storage = try FolderStorage(at: folder.path, draftLifetime: draftLifetime)
            try await storage.write(object("text"), as: "a", isDurable: true)
            folder.write(Array("te".utf8), to: "a-1234.draft")
            #expect(try await storage.list("", after: nil).map(\.name) == ["a"])
            #expect(folder.read("a-1234.draft").isEmpty != isLeft)
            await storage.close()
        }
        await folder.remove()
    }

    @Test(arguments: StorageKind.allCases) func refusesLargeObjects(_ kind: StorageKind) async throws {
        try await with(kind) { storage in
            try await storage.write(object(String(repeating: "x", count: 1000)), as: "a", isDurable: true)
            #expect(try await storage.read("a", upTo: 1000)?.body.count == 1000)
            let error = await #expect(throws: StorageError.self) { try await storage.read("a", upTo: 999) }
            #expect(error?.kind == .tooLarge)
        }
    }

    @Test(arguments: StorageKind.allCases) func probeLeavesNothing(_ kind: StorageKind) async throws {
        try await kind.with { options in
            try await ResultStore.with(options, isStarted: false) { store in
                try await store.probe()
                #expect(await store.allNames().isEmpty)
            }
        }
    }

    @Test(arguments: [
        ("file:///var/lib/x", ResultStoreLocation.folder("/var/lib/x")), ("file:///x/", .folder("/x")),
        ("s3://bucket", .s3(bucket: "bucket", prefix: "")), ("s3://bucket/", .s3(bucket: "bucket", prefix: "")),
        ("s3://bucket/a/b/", .s3(bucket: "bucket", prefix: "a/b/")),
    ]) func parsesLocations(text: String, location: ResultStoreLocation) {
        #expect(ResultStoreLocation(text) == location)
    }

    @Test(arguments: [
        "", "/var/lib", "file:", "file://", "file://host/x", "file:///", "file:///a/../b", "file:///a/./b",
        "file:///a b",
        "file:///a\u{7}", "s3://", "s3:///x", "s3://a/x", "s3://bucket/../x", "s3://bucket/a?b", "s3://bucket/a#b",
        "s3://bucket/%2e%2e/x", "s3://bucket/é", "s3://bucket/" + String(repeating: "x", count: 600), "http://x/y",
    ]) func rejectsLocations(text: String) {
        #expect(ResultStoreLocation(text) == nil)
    }
}
