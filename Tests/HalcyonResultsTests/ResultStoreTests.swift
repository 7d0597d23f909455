import Concurrency
import Formats
import HalcyonModel
import Telemetry
import TestSupport
import Testing

@testable import HalcyonResults

/// Results in the store: their life, their purges, and objects that are not what they should be.
@Suite(.limitedParallelism) struct ResultStoreTests {
    @Test(arguments: StorageKind.allCases) func findsResultsUntilTheyExpire(_ kind: StorageKind) async throws {
        try await kind.with { options in
            try await ResultStore.with(options) { store in
                let (result, short) = (Samples.result(), Samples.result(Samples.key("b"), for: 1))
                #expect(await store.find(result.key) == nil)
                try await store.put(result)
                try await store.put(short)
                #expect(await store.find(result.key) == result)
                try await until("the other result has expired") { await store.find(short.key) == nil }
                #expect(await store.find(result.key) == result)
            }
            // Another process finds it, too.
            try await ResultStore.with(options) { store in
                #expect(await store.find(Samples.key("a"))?.body == Array("picture".utf8))
            }
        }
    }

    /// Each purge, and the names of the results that it removes: `old` was made before it, `new` after it from the same
    /// fetched source, and `newest` from a later one.
    enum PurgeCase: CaseIterable {
        case source, key, tag, tenantTag
    }

    @Test(arguments: StorageKind.allCases, PurgeCase.allCases)
    func purgeRemovesWhatWasMadeBefore(_ kind: StorageKind, _ purge: PurgeCase) async throws {
        try await kind.with { options in
            try await ResultStore.with(options) { store in
                let tenant = purge == .tenantTag ? "shop" : nil
                let key = Samples.key("a", tenant: tenant)
                let target: Purge =
                    switch purge {
                    case .source: Purge(.source(Samples.source("a")))
                    case .key: Purge(.key(key))
                    case .tag: Purge(.tag("x"))
                    case .tenantTag: Purge(.tag("x"), of: "shop")
                    }
                let time = Samples.now
                let (old, other) = (
                    Samples.result(key, tenant: tenant, fence: time - 1000),
                    Samples.result(Samples.key("b", tenant: tenant), tenant: tenant, fence: time - 1000)
                )
                try await store.put(old, tags: ["x", "y"])
                try await store.put(other, tags: ["y"])
                #expect(try await store.purge(target, at: time) == 1)
                #expect(await store.find(key) == nil)
                #expect(await store.find(other.key) == other.found(with: ["y"]))
                #expect(await !store.allNames().contains(ObjectName.result(key)))

                // A late writer cannot bring it back, here or in a process that has not heard of the purge yet.
                try await store.put(old, tags: ["x"])
                #expect(await store.find(key) == nil)

                // Made after the purge, from the source that was fetched before it.
                let new = Samples.result(key, body: "new", tenant: tenant, fence: time + 1000, since: time - 1000)
                try await store.put(new, tags: ["x"])
                #expect(await store.find(key) == (purge == .source ? nil : new.found(with: ["x"])))
                let newest = Samples.result(key, body: "newest", tenant: tenant, fence: time + 2000)
                try await store.put(newest, tags: ["x"])
                #expect(await store.find(key) == newest.found(with: ["x"]))
            }
        }
    }

    @Test(arguments: StorageKind.allCases) func purgesOfOthersAreReadFromTheStore(_ kind: StorageKind) async throws {
        try await kind.with { options in
            var options = options
            options.refreshInterval = .milliseconds(100)
            try await ResultStore.with(options) { reader in
                try await ResultStore.with(options) { [options] writer in
                    let old = Samples.result(fence: Samples.now - 1000)
                    try await writer.put(old)
                    #expect(await reader.find(old.key) == old)
                    _ = try await writer.purge(Purge(.source(Samples.source("a"))), at: Samples.now)
                    // Written late by a process that does not know of the purge.
                    try await ResultStore.with(options, isStarted: false) { try await $0.put(old) }
                    try await until("the other process knows of the purge") { await reader.find(old.key) == nil }
                    // So does one that starts now.
                    try await ResultStore.with(options) { #expect(await $0.find(old.key) == nil) }
                }
            }
        }
    }

    @Test func hearsOfPurges() async throws {
        try await StorageKind.folder.with { options in
            try await ResultStore.with(options) { store in
                let old = Samples.result(fence: Samples.now - 1000)
                try await store.put(old)
                store.heard(Purge(.key(old.key)), at: Samples.now)
                #expect(await store.find(old.key) == nil)
            }
        }
    }

    /// A result that was found by a job with a tag is purged with the tag, although its own job did not have it.
    @Test(arguments: StorageKind.allCases) func purgeByTagReachesHits(_ kind: StorageKind) async throws {
        try await kind.with { options in
            try await ResultStore.with(options) { store in
                let (result, end) = (Samples.result(fence: Samples.now - 1000), Timestamp.now.seconds + 100)
                try await store.put(result)
                for _ in 0..<2 { try await store.index(result.key, under: ["x"], of: nil, until: end) }
                try await until("the entry is written") { await store.allNames().count == 2 }
                #expect(try await store.purge(Purge(.tag("x")), at: Samples.now) == 1)
                #expect(await store.find(result.key) == nil)
                // The entry is written again for a later hit.
                let next = Samples.result(fence: Samples.now + 1_000_000)
                try await store.put(next)
                try await store.index(next.key, under: ["x"], of: nil, until: Timestamp.now.seconds + 100)
                try await until("the entry is written") { await store.allNames().count == 3 }
                #expect(try await store.purge(Purge(.tag("x")), at: Samples.now + 2_000_000) == 1)
                #expect(await store.find(next.key) == nil)
            }
        }
    }

    /// An entry lasts as long as the result, whose life a job may extend.
    @Test func entryIsWrittenAgainForALongerLife() async throws {
        try await StorageKind.folder.with { options in
            try await ResultStore.with(options) { store in
                let (result, end) = (Samples.result(), Timestamp.now.seconds + 100)
                let entry = ObjectName.entry(result.key, in: .tag("x", of: nil))
                try await store.put(result)
                for seconds in [0.0, 500] {
                    try await store.index(result.key, under: ["x"], of: nil, until: end + seconds)
                    try await until("the entry lasts as long") {
                        let expiry = try await store.storage.list(entry, after: nil).first?.expiresAt
                        return expiry ?? 0 >= end + seconds
                    }
                }
            }
        }
    }

    /// A job that extends the life of a result has other tags than the one that made it.
    @Test(arguments: StorageKind.allCases) func extensionKeepsTheTagsOfTheResult(_ kind: StorageKind) async throws {
        try await kind.with { options in
            try await ResultStore.with(options) { store in
                let result = Samples.result(fence: Samples.now - 1000)
                try await store.put(result, tags: ["x"])
                var longer = result
                longer.expiresAt += 100_000
                try await store.extend(longer, tags: ["y"])
                let (expected, end) = (longer.found(with: ["x"]), Double(longer.expiresAt) / 1000)
                try await until("the result is written again") { await store.find(expected.key) == expected }
                let entry = ObjectName.entry(expected.key, in: .tag("x", of: nil))
                let expiry = try #require(try await store.storage.list(entry, after: nil).first).expiresAt
                let lasts = expiry.map { $0 >= end } ?? kind.isBucket
                #expect(lasts)
                #expect(try await store.purge(Purge(.tag("x")), at: Samples.now) == 1)
                #expect(await store.find(expected.key) == nil)
            }
        }
    }

    /// A purge that Redis knows of wins over a late write.
    @Test func removesWhatWasPurgedMeanwhile() async throws {
        try await StorageKind.folder.with { options in
            let metrics = Metrics()
            try await ResultStore.with(options, metrics: metrics) {
                $0.fence < 5000 ? .purged : .current
            } _: { store in
                try await store.put(Samples.result(fence: 4000))
                #expect(await store.find(Samples.key("a")) == nil)
                try await store.put(Samples.result(fence: 6000))
                #expect(await store.find(Samples.key("a")) != nil)
            }
            #expect(metrics.value(of: "halcyon_result_store_fenced_total") == 1)
        }
    }

    /// A newer result of the same key wins over a late write, also if its object had been written before.
    @Test(arguments: StorageKind.allCases) func lateWritesDoNotReplaceNewerResults(_ kind: StorageKind) async throws {
        try await kind.with { options in
            let newer = Samples.result(body: "newer", fence: 6000)
            try await ResultStore.with(options) {
                $0.fence < 6000 ? .replaced(by: newer) : .current
            } _: { store in
                try await store.put(newer)
                try await store.put(Samples.result(body: "older", fence: 4000))
                #expect(await store.find(newer.key) == newer)
            }
        }
    }

    /// A result that was made after a purge stays, although a late write of a purged one was removed meanwhile.
    @Test func removalOfALateWriteSparesTheNextResult() async throws {
        try await StorageKind.folder.with { options in
            let (next, checks) = (Samples.result(body: "next", fence: 6000), Lock(0))
            try await ResultStore.with(options) { result in
                guard result.fence < 6000 else { return .current }
                // The next result comes while the late write is being removed.
                return checks.withLock {
                    $0 += 1; return $0
                } == 1 ? .purged : .replaced(by: next)
            } _: { store in
                try await store.put(Samples.result(body: "older", fence: 4000))
                #expect(await store.find(next.key) == next)
            }
        }
    }

    enum Damage: CaseIterable {
        case altered, truncated, foreign, otherKey, otherVersion, noRecord
    }

    /// Objects that somebody else has changed are misses, and are written again.
    @Test(arguments: StorageKind.allCases, Damage.allCases)
    func rejectsDamagedObjects(_ kind: StorageKind, _ damage: Damage) async throws {
        try await kind.with { options in
            let metrics = Metrics()
            try await ResultStore.with(options, metrics: metrics) { store in
                let (result, name) = (Samples.result(), ObjectName.result(Samples.key("a")))
                try await store.put(result)
                var object = try #require(try await store.storage.read(name, upTo: 1000))
                object.mediaType = "image/jpeg"
                switch damage {
                case .altered: object.body[3] ^= 1
                case .truncated: object.body.removeLast()
                case .foreign: (object.body, object.record) = (Array("hello".utf8), Array("world".utf8))
                case .otherKey:
                    object.record = ResultRecord(Samples.result(Samples.key("b")), scopes: []).json
                case .otherVersion:
                    let json = String(decoding: object.record, as: UTF8.self)
                    object.record = Array(json.replacing("\"v\":1,", with: "\"v\":3,").utf8)
                case .noRecord: object.record = []
                }
                try await store.storage.write(object, as: name, isDurable: true)
                #expect(await store.find(result.key) == nil)
                #expect(metrics.value(of: "halcyon_result_store_reads_total{result=\"rejected\"}") >= 1)
                // As after a rendering.
                try await store.writeBehind(result, tags: [])
                try await until("the result is written again") { await store.find(result.key) == result }
            }
        }
    }

    @Test(arguments: StorageKind.allCases) func removesOnlyResultsOfTheRule(_ kind: StorageKind) async throws {
        try await kind.with { options in
            try await ResultStore.with(options) { store in
                let result = Samples.result()
                var other = Samples.result(Samples.key("b"))
                other.rule = "600"
                for stored in [result, other] {
                    try await store.put(stored)
                    try await store.remove(stored.key, of: "0")
                    await store.queue.wait(for: stored.key.description)
                }
                #expect(await store.find(result.key) == nil)
                #expect(await store.find(other.key) == other)
            }
        }
    }

    @Test(arguments: StorageKind.allCases) func ensureWritesOnlyWhatIsMissing(_ kind: StorageKind) async throws {
        try await kind.with { options in
            let metrics = Metrics()
            func written() -> Double { metrics.value(of: "halcyon_result_store_bytes_total{direction=\"written\"}") }
            try await ResultStore.with(options, metrics: metrics) { store in
                let result = Samples.result()
                try await store.writeBehind(result, tags: [])
                // Waits for the write in the queue.
                try await store.ensure(result, tags: [])
                #expect(written() == 7)
                var longer = result
                longer.expiresAt += 1
                try await store.ensure(longer, tags: [])
                #expect(written() == 14)
                #expect(await store.find(result.key) == longer)
            }
        }
    }

    /// Purges and required results survive a crash of the machine. Written behind, a result need not.
    @Test func onlyWhatIsRequiredIsDurable() async throws {
        let folder = TemporaryFolder("results")
        let storage = RecordingStorage(try FolderStorage(at: folder.path))
        let store = ResultStore(
            storage, .patient(.folder(folder.path)), log: .silent, metrics: Metrics())
        let (one, other) = (Samples.result(), Samples.result(Samples.key("b")))
        try await store.writeBehind(one, tags: ["x"])
        try await store.ensure(one, tags: ["x"])
        let (name, entry) = (ObjectName.result(one.key), ObjectName.entry(one.key, in: .tag("x", of: nil)))
        #expect(storage.calls == ["write durably \(entry)", "write \(name)", "synchronize \(name)"])
        try await store.ensure(other, tags: [])
        #expect(storage.calls.last == "write durably \(ObjectName.result(other.key))")
        let time = Samples.now
        _ = try await store.purge(Purge(.tag("x")), at: time)
        #expect(storage.calls.last == "write durably \(ObjectName.tombstone(.tag("x", of: nil), at: time))")
        await store.close(within: .seconds(60))
        await folder.remove()
    }

    /// 32 tags and a long entity tag fit into the metadata of S3. A record that does not fit is an error.
    @Test(arguments: StorageKind.allCases) func storesManyTags(_ kind: StorageKind) async throws {
        try await kind.with { options in
            try await ResultStore.with(options) { store in
                let tags = (0..<Job.mostTags).map { String(repeating: "\($0)é", count: 30) }
                let time = Samples.now
                let result = Samples.result(
                    Samples.key("a", tenant: "shop"), tenant: "shop", fence: time - 1,
                    etag: String(repeating: "e", count: 40))
                try await store.put(result, tags: tags)
                #expect(await store.find(result.key) == result.found(with: tags))
                #expect(try await store.purge(Purge(.tag(tags[31]), of: "shop"), at: time) == 1)
                #expect(await store.find(result.key) == nil)
                guard kind.isBucket else { return }
                let error = await #expect(throws: StorageError.self) {
                    try await store.put(Samples.result(etag: String(repeating: "e", count: 2000)))
                }
                #expect(error?.kind == .tooLarge)
            }
        }
    }

    /// Neither long facts nor the faces of a group exceed the metadata of S3.
    @Test(arguments: StorageKind.allCases) func storesFactsAndFaces(_ kind: StorageKind) async throws {
        try await kind.with { options in
            try await ResultStore.with(options) { store in
                var facts = Samples.result(body: "{\"camera\":\"\(String(repeating: "x", count: 3000))\"}")
                facts.metadata.format = .json
                facts.metadata.info = facts.body
                var group = Samples.result(Samples.key("b"))
                group.metadata.faces = (0..<32).map { number in
                    DetectedFace(PixelRect(x: 1000 + number, y: 200, width: 74, height: 97), confidence: 0.9303)
                }
                var nobody = Samples.result(Samples.key("c"))
                nobody.metadata.faces = []
                for result in [facts, group, nobody] {
                    try await store.put(result)
                    #expect(await store.find(result.key) == result)
                }
            }
        }
    }

    @Test func concurrentReadsShareOneRequest() async throws {
        try await StorageKind.s3.with { options in
            let metrics = Metrics()
            try await ResultStore.with(options, metrics: metrics) { store in
                try await store.put(Samples.result())
                await withTaskGroup(of: Void.self) { group in
                    for _ in 0..<1000 {
                        group.addTask { #expect(await store.find(Samples.key("a")) != nil) }
                    }
                }
            }
            // All begin before the first response arrives, but a busy machine may start some later.
            #expect(metrics.value(of: "halcyon_result_store_reads_total{result=\"hit\"}") < 100)
        }
    }
}
