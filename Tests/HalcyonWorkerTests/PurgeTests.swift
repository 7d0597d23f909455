import Foundation
import HalcyonCluster
import HalcyonModel
import HalcyonWorker
import Redis
import TestSupport
import Testing
import Threads

/// What is purged stays away, through whole workers.
@Suite(.takesTurns) struct PurgeTests {
    /// An origin of two versions: the first is held back until the gate is open.
    private static func with(
        redis kind: RedisDeployment.Kind = .server,
        _ body: (Stage, RawOrigin, Gate) async throws -> Void
    ) async throws {
        let photograph = try Photograph.bytes()
        let (gate, count) = (Gate(), Lock(0))
        let origin = RawOrigin { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 { gate.pass() }
            return RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600", "ETag: \"v\(number)\""])
        }
        try await Stage.with(redis: kind) { stage in try await stage.withWorker { try await body(stage, origin, gate) }
        }
        try await origin.stop()
    }

    private static func job(_ id: String, _ origin: RawOrigin, _ members: String = "") -> String {
        #"{"id":"\#(id)","source":"\#(origin.url("/a"))","width":64,"height":64\#(members)}"#
    }

    private func version(_ stage: Stage, of key: String) async throws -> String? {
        guard let facts = try await stage.client.send("HGET", .string(key), "facts").string else { return nil }
        return facts.contains("v1") ? "v1" : "v2"
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func aSourceThatIsPurgedWhileItIsLoadedIsAskedForAgain(on kind: RedisDeployment.Kind) async throws {
        try await Self.with(redis: kind) { stage, origin, gate in
            try await stage.submit(Self.job("a", origin))
            try await until("the transfer has begun") { origin.requests.count == 1 }
            let purge = Purge(.source(try Source(origin.url("/a"))))
            #expect(try await Purger(stage.client).run(purge) == 0)
            try await stage.tell(.purge(purge))
            gate.open()
            let ready = try await stage.events.terminal(of: "a")
            #expect(ready.kind == "ready" && origin.requests.count == 2)
            #expect(try await version(stage, of: ready.key) == "v2")
            // Neither is the source that of before.
            try await stage.submit(Self.job("b", origin, #","format":"png""#))
            let other = try await stage.events.terminal(of: "b")
            #expect(other.origin == "source-cache")
            #expect(try await version(stage, of: other.key) == "v2")
        }
    }

    @Test func aKeyThatIsPurgedWhileItIsMadeIsMadeAgain() async throws {
        try await Self.with { stage, origin, gate in
            let source = try Source(origin.url("/a"))
            gate.open()
            try await stage.submit(Self.job("first", origin))
            let key = try await stage.events.terminal(of: "first").key
            #expect(try await Purger(stage.client).run(Purge(.key(try #require(ResultKey(key))))) == 1)
            #expect(try await version(stage, of: key) == nil)
            // The kept source is still good for it.
            try await stage.submit(Self.job("again", origin))
            #expect(try await stage.events.terminal(of: "again").origin == "source-cache")
            #expect(try await version(stage, of: key) == "v1")
            #expect(try await Purger(stage.client).run(Purge(.source(source))) == 1)
            try await stage.submit(Self.job("anew", origin))
            #expect(try await stage.events.terminal(of: "anew").origin == "network")
            #expect(try await version(stage, of: key) == "v2")
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func aTagGoesWithWhatWasMadeFoundAndIsBeingMade(on kind: RedisDeployment.Kind) async throws {
        try await Self.with(redis: kind) { stage, origin, gate in
            try await stage.submit(Self.job("made", origin, #","tags":["t","u"]"#))
            try await until("the transfer has begun") { origin.requests.count == 1 }
            // It is not stored yet: nothing is known of it, and it must not come afterwards.
            #expect(try await Purger(stage.client).run(Purge(.tag("t"))) == 0)
            gate.open()
            let key = try await stage.events.terminal(of: "made").key
            #expect(try await version(stage, of: key) == nil)
            // Made again, by a job that has not that tag, and found by one that has.
            try await stage.submit(Self.job("again", origin))
            _ = try await stage.events.terminal(of: "again")
            try await stage.submit(Self.job("found", origin, #","tags":["t"]"#))
            #expect(try await stage.events.terminal(of: "found").origin == "memory")
            #expect(try await Purger(stage.client).run(Purge(.tag("t"), of: "other")) == 0)
            #expect(try await Purger(stage.client).run(Purge(.tag("t"))) == 1)
            #expect(try await version(stage, of: key) == nil)
        }
    }

    @Test func workersForgetWhatTheyKeepByThemselves() async throws {
        let origin = try Photograph.origin()
        let folder = TemporaryFolder("purge")
        try await Stage.with { stage in
            let purge = Purge(.source(try Source(origin.url("/a"))))
            func change(_ options: inout WorkerOptions) {
                options.sourceTier.folder = folder.path
                options.sourceTier.redisBytes = 0
            }
            @Sendable func made(_ id: String) async throws -> String? {
                try await stage.submit(Self.job(id, origin, #","cache":{"memory":false}"#))
                return try await stage.events.terminal(of: id).origin
            }
            try await stage.withWorker(change) {
                #expect(try await made("1") == "network")
                #expect(try await made("2") == "source-cache")
                try await stage.tell(.purge(purge))
                try await until("it is forgotten") { try await made(UUID().uuidString) == "network" }
                #expect(try await made("3") == "source-cache")
            }
            // One that was away hears of it when it comes back, and of older ones no more than is so.
            try await Task.sleep(for: .milliseconds(5))
            try await stage.tell(.purge(purge))
            try await Task.sleep(for: .milliseconds(5))
            let count = origin.requests.count
            for (id, origin) in [("4", "network"), ("5", "source-cache")] {
                try await stage.withWorker(change) {
                    let found = try await made(id)
                    #expect(found == origin)
                }
            }
            #expect(origin.requests.count == count + 1)
        }
        try await origin.stop()
        await folder.remove()
    }
}
