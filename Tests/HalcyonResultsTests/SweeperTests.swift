import Concurrency
import Formats
import HalcyonModel
import Telemetry
import TestSupport
import Testing

@testable import HalcyonResults

/// Deletion of what nobody needs any more.
@Suite(.limitedParallelism) struct SweeperTests {
    @Test func deletesExpiredResultsAndTheirEntries() async throws {
        try await StorageKind.folder.with { options in
            try await ResultStore.with(options) { store in
                try await store.put(Samples.result(Samples.key("old"), for: 1), tags: ["x"])
                try await store.put(Samples.result(Samples.key("new")), tags: ["x"])
                #expect(await store.allNames().count == 4)
                try await until("the first result has expired") { await store.find(Samples.key("old")) == nil }
                // The expiry in a folder is in whole seconds, rounded up.
                try await until("it is deleted") { await store.sweep() == SweepReport(results: 1, bytes: 7) }
                #expect(await store.find(Samples.key("new")) != nil)
                #expect(await store.allNames().count == 2)
            }
        }
    }

    @Test func evictsLeastRecentlyUsedResultsBeyondTheBudget() async throws {
        try await StorageKind.folder.with { options in
            var options = options
            options.budget = 100
            try await ResultStore.with(options) { store in
                let body = String(repeating: "x", count: 20)
                for number in 0..<8 {
                    try await store.put(Samples.result(Samples.key("\(number)"), body: body))
                }
                for number in [0, 3] { #expect(await store.find(Samples.key("\(number)")) != nil) }
                // Down to 90 bytes.
                #expect(await store.sweep() == SweepReport(evicted: 4, results: 4, bytes: 80))
                for number in 0..<8 {
                    #expect(await (store.find(Samples.key("\(number)")) != nil) == [0, 3, 6, 7].contains(number))
                }
            }
        }
    }

    @Test(arguments: StorageKind.allCases) func removesOldTombstonesAndLateResults(_ kind: StorageKind) async throws {
        try await kind.with { options in
            var options = options
            options.tombstoneLifetime = .seconds(100)
            try await ResultStore.with(options) { store in
                let old = Samples.now - 200_000_000
                for target in [Purge.Target.source(Samples.source("a")), .tag("x"), .key(Samples.key("c"))] {
                    _ = try await store.purge(Purge(target), at: old)
                }
                _ = try await store.purge(Purge(.tag("recent")), at: Samples.now)
                let late = [
                    Samples.result(Samples.key("a"), fence: old - 1), Samples.result(Samples.key("b"), fence: old - 1),
                    Samples.result(Samples.key("c"), fence: old - 1),
                ]
                // Written late, by a process that does not know of the purges.
                try await ResultStore.with(options, isStarted: false) { writer in
                    for result in late { try await writer.put(result, tags: ["x"]) }
                }
                try await store.put(Samples.result(Samples.key("a", width: 20), fence: old + 1), tags: ["x"])
                let report = try #require(await store.sweep())
                #expect(report.purged >= 3 && report.tombstones == 3)
                let names = await store.allNames()
                #expect(names.filter { $0.hasPrefix(ObjectName.purges) }.count == 1)
                #expect(names.filter { $0.hasPrefix(ObjectName.results) }.count == 1)
                #expect(await store.find(Samples.key("a", width: 20)) != nil)
            }
        }
    }

    @Test func onlyOneProcessSweeps() async throws {
        try await StorageKind.folder.with { options in
            var options = options
            (options.sweepInterval, options.refreshInterval) = (.milliseconds(50), .milliseconds(10))
            let (asked, metrics) = (Lock(0), Metrics())
            let store = try ResultStore.open(options, log: .silent, metrics: metrics)
            try await store.put(Samples.result(for: 1))
            store.start { interval in
                #expect(interval == .milliseconds(50))
                return asked.withLock { asked in
                    asked += 1
                    return asked > 3
                }
            }
            try await until("the result is swept") {
                metrics.value(of: "halcyon_result_store_swept_total{reason=\"expired\"}") == 1
            }
            #expect(asked.withLock { $0 } > 3)
            await store.close(within: .seconds(5))
        }
    }
}
