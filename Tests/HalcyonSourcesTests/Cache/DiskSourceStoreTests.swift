import Concurrency
import Glibc
import HalcyonModel
import Hashing
import Subprocess
import TestSupport
import Testing

@testable import HalcyonSources

@Suite struct DiskSourceStoreTests {
    private static func body(_ count: Int, _ byte: UInt8 = 7) -> SourceEntry {
        SourceStoreTests.entry([UInt8](repeating: byte, count: count))
    }

    private static func open(_ path: String, capacity: Int = 1 << 20) async throws -> DiskSourceStore {
        try await blocking { try DiskSourceStore(under: path, capacity: capacity) }
    }

    /// Runs `body` with a store, and closes the store.
    private static func with(
        _ path: String, capacity: Int = 1 << 20, _ body: (DiskSourceStore) async throws -> Void
    ) async throws {
        let store = try await open(path, capacity: capacity)
        do {
            try await body(store)
            await blocking { store.close() }
        } catch {
            await blocking { store.close() }
            throw error
        }
    }

    /// Returns all files except the locks.
    private static func files(_ path: String) -> [String] {
        var found = glob_t()
        defer { globfree(&found) }
        guard glob("\(path)/*/*/*", 0, nil, &found) == 0 else { return [] }
        return (0..<Int(found.gl_pathc)).map { String(cString: found.gl_pathv[$0]!) }
    }

    /// Returns the times at which the files were last used, in nanoseconds since 1970.
    private static func lastUses(_ path: String) -> [Int] {
        files(path).map { file in
            var status = stat()
            lstat(file, &status)
            return status.st_mtim.tv_sec * 1_000_000_000 + status.st_mtim.tv_nsec
        }
    }

    @Test func reopenedStoreKeepsTheMostRecentlyUsed() async throws {
        let folder = TemporaryFolder("disk")
        try await Self.with(folder.path) { store async throws in
            for index in 0..<20 { try await store.store(Self.body(1000, UInt8(index)), as: "k\(index)", for: 600) }
            _ = try await store.find("k0")
        }
        // The times of use differ, however fast the uses follow each other.
        #expect(Set(Self.lastUses(folder.path)).count == 20)
        // With room for six of them: the most recently used one and the newest ones remain.
        try await Self.with(folder.path, capacity: 9000) { store async throws in
            #expect(store.bytes <= 9000)
            #expect(try await store.find("k0")?.entry == Self.body(1000, 0))
            #expect(try await store.find("k19")?.entry == Self.body(1000, 19))
            #expect(try await store.find("k1") == nil)
        }
        #expect(Self.files(folder.path).count < 10)
        await folder.remove()
    }

    @Test func concurrentStoresUseSeparateDirectories() async throws {
        let folder = TemporaryFolder("disk")
        try await Self.with(folder.path) { first in
            try await Self.with(folder.path) { second in
                try await first.store(Self.body(10), as: "k", for: 60)
                #expect(try await second.find("k") == nil)
            }
        }
        try await Self.with(folder.path) { again async throws in
            #expect(try await again.find("k") != nil)
        }
        await folder.remove()
    }

    @Test func staysWithinCapacityUnderConcurrentWrites() async throws {
        let folder = TemporaryFolder("disk")
        try await Self.with(folder.path, capacity: 50_000) { store async throws in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 0..<4 {
                    group.addTask {
                        for round in 0..<50 {
                            try await store.store(Self.body(500 * (round % 9 + 1)), as: "k\(task)-\(round)", for: 60)
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(store.bytes <= 50_000 && store.bytes > 30_000)
            var onDisk = 0
            for file in Self.files(folder.path) {
                var status = stat()
                if stat(file, &status) == 0 { onDisk += Int(status.st_size) }
            }
            #expect(onDisk == store.bytes)
        }
        await folder.remove()
    }

    @Test func removesDamagedFiles() async throws {
        let folder = TemporaryFolder("disk")
        try await Self.with(folder.path) { store async throws in
            for damage in 0..<5 {
                try await store.store(Self.body(1000), as: "k", for: 60)
                let file = try #require(Self.files(folder.path).first)
                let size = 1200
                switch damage {
                case 0: truncate(file, 0)
                case 1: truncate(file, 63)
                case 2: truncate(file, 900)
                case 3: overwrite(file, at: 3)
                default: overwrite(file, at: size)
                }
                #expect(try await store.find("k") == nil, "damage \(damage)")
                #expect(Self.files(folder.path).isEmpty)
                #expect(store.bytes == 0)
            }
        }
        await folder.remove()
    }

    private func overwrite(_ file: String, at place: Int) {
        let descriptor = Glibc.open(file, O_RDWR)
        var byte: UInt8 = 0
        pread(descriptor, &byte, 1, place)
        byte ^= 0x10
        pwrite(descriptor, &byte, 1, place)
        close(descriptor)
    }

    @Test func returnsTheOlderFencingToken() async throws {
        let folder = TemporaryFolder("disk")
        try await Self.with(folder.path) { store async throws in
            _ = try await store.store(Self.body(10), as: "source", for: 60, StoreOptions(fence: 7))
            _ = try await store.store(Self.body(10), as: "copy", for: 60, StoreOptions(fence: 9, since: 8))
            let source = try #require(try await store.find("source"))
            let copy = try #require(try await store.find("copy"))
            #expect(source.fence == 7 && copy.fence == 8)
            #expect(source.version == nil && copy.version == nil)
        }
        await folder.remove()
    }

    @Test func readsFilesWithoutAFencingToken() throws {
        let entry = Self.body(10)
        let bytes = DiskFile(key: "k", keptAt: 1, lifetime: 2, fence: 3, entry: entry).bytes
        let rest: [UInt8] = Array(bytes[40..<64] + bytes[72...])
        let old: [UInt8] = Array("HALCYON1".utf8) + SHA256.hash(rest).bytes + rest
        let file = try #require(DiskFile(old))
        #expect(file.fence == 0 && file.key == "k" && file.entry == entry)
        #expect(DiskFile(bytes)?.fence == 3)
    }

    @Test func purgedEntryIsNotStoredAgain() async throws {
        let folder = TemporaryFolder("disk")
        try await Self.with(folder.path) { store async throws in
            @Sendable func stores(_ key: String, fence: Int) async throws -> Bool {
                try await store.store(Self.body(10), as: key, for: 60, StoreOptions(fence: fence))
            }
            #expect(try await stores("k", fence: 5))
            try await store.purge("k", at: 10, keepsNewer: true)
            #expect(try await store.find("k") == nil)
            for fence in [0, 5, 9] { #expect(try await !stores("k", fence: fence)) }
            #expect(try await store.find("k") == nil)
            #expect(try await stores("other", fence: 0))
            // It was fetched after the purge.
            #expect(try await stores("k", fence: 10))
            try await store.purge("k", at: 10, keepsNewer: true)
            #expect(try await store.find("k")?.fence == 10)
            try await store.purge("k", at: 10, keepsNewer: false)
            #expect(try await store.find("k") == nil)
            #expect(try await store.find("other") != nil)
        }
        await folder.remove()
    }

    @Test func storesSourcesFetchedWithoutRedisWhenTheirPurgeIsForgotten() async throws {
        let folder = TemporaryFolder("disk")
        let store = try await blocking {
            try DiskSourceStore(under: folder.path, capacity: 1 << 20, purgeRetention: .zero)
        }
        try await store.purge("k", at: 10, keepsNewer: true)
        for (fence, isStorable) in [(9, false), (0, true)] {
            let isStored = try await store.store(Self.body(10), as: "k", for: 60, StoreOptions(fence: fence))
            #expect(isStored == isStorable)
        }
        await blocking { store.close() }
        await folder.remove()
    }

    @Test func removesIncompleteFilesWhenOpened() async throws {
        let folder = TemporaryFolder("disk")
        try await Self.with(folder.path) { store in try await store.store(Self.body(10), as: "k", for: 60) }
        let file = try #require(Self.files(folder.path).first)
        #expect(rename(file, "\(file)-1f.new") == 0)
        try await Self.with(folder.path) { store in #expect(store.bytes == 0) }
        #expect(Self.files(folder.path).isEmpty)
        await folder.remove()
    }

    /// Uses a file system of one megabyte. Mounting it requires root.
    @Test(.enabled(if: geteuid() == 0, "only root can mount a file system")) func evictsWhenDiskIsFullAndThenFails()
        async throws
    {
        let folder = TemporaryFolder("disk")
        let mount = try await ChildProcess.start("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder.path])
        try #require(await mount.exit() == .code(0))
        try await Self.with(folder.path, capacity: 1 << 30) { store async throws in
            // More than fits: older entries are evicted.
            for index in 0..<40 { try await store.store(Self.body(100_000), as: "k\(index)", for: 60) }
            #expect(try await store.find("k39") != nil && store.bytes < 1 << 20)
            // An entry that is larger than the file system.
            folder.write([UInt8](repeating: 1, count: 10), to: "small")
            await #expect(throws: DiskError.self) { try await store.store(Self.body(2 << 20), as: "large", for: 60) }
            #expect(try await store.find("large") == nil)
            // Smaller entries can still be stored.
            try await store.store(Self.body(1000), as: "after", for: 60)
            #expect(try await store.find("after") != nil)
        }
        _ = try await ChildProcess.start("umount", [folder.path]).exit()
        await folder.remove()
    }

    @Test func errorNamesFolderThatCannotBeCreated() async throws {
        let folder = TemporaryFolder("disk")
        folder.write([1], to: "file")
        let error = await #expect(throws: DiskError.self) { try await Self.open("\(folder.path)/file") }
        #expect(error?.description.contains(folder.path) == true)
        await folder.remove()
    }
}
