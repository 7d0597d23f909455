import Glibc
import HalcyonWorker
import Redis
import Subprocess
import Telemetry
import TestSupport
import Testing

@Suite(.limitedParallelism, .extended) struct RedisOutageTests {
    @Test func losesNoJobDuringAnOutageAndLogsItOnce() async throws {
        let start = ContinuousClock.now
        let origin = try SampleImages.origin()
        let sink = RecordingLogSink()
        try await WorkerFixture.with { cluster in
            let worker = try await Worker.start(
                cluster.options, log: Log(level: .info, sink: sink), metrics: Metrics())
            await worker.ready()
            cluster.redis.process.send(SIGKILL)
            await cluster.redis.process.exit()
            for number in 0..<20 {
                try await cluster.submit(
                    #"{"id":"\#(number)","source":"\#(origin.url("/\(number)"))","width":64,"height":64}"#)
            }
            // No event may claim that a result is stored while Redis is unavailable.
            try await Task.sleep(for: .seconds(1))
            let again = try await RedisServer.start(port: cluster.redis.port)
            try await until("the test's own client is connected again") {
                try await cluster.client.send("PING").string == "PONG"
            }
            for number in 0..<20 {
                let event = try await cluster.events.terminal(of: "\(number)")
                #expect(event.kind == "ready")
                let isStored = try await cluster.client.send("EXISTS", .string(event.key)).integer == 1
                #expect(isStored || event.variant["data"] != nil)
            }
            try await cluster.submit(#"{"id":"after","source":"\#(origin.url("/0"))","width":32,"height":32}"#)
            #expect(try await cluster.events.terminal(of: "after").data["expiresAt"] != nil)
            // A busy machine may lose the connection again, but not often. Each loss and each recovery is logged.
            let lines = ["connected to Redis", "Redis is unavailable; waiting for it to return"]
            let logged = try await firstValue("the recovery is logged") { () async throws -> [String]? in
                let logged = sink.records.map(\.message).filter { lines.contains($0) }
                return logged.count >= 3 && logged.last == lines[0] ? logged : nil
            }
            #expect(zip(logged, logged.dropFirst()).allSatisfy { $0 != $1 }, "\(logged)")
            let pairs = 1 + Int(start.duration(to: .now) / .seconds(10))
            #expect(logged.count <= 1 + 2 * pairs, "\(logged)")
            #expect(await worker.shutdown(gracePeriod: .seconds(60)) == 0)
            await again.stop()
        }
        try await origin.stop()
    }

    @Test func losesNoJobWhenAPrimaryOfAClusterFails() async throws {
        let origin = try SampleImages.origin()
        let sink = RecordingLogSink()
        try await WorkerFixture.with(redis: .cluster) { cluster in
            let redisCluster = try #require(cluster.deployment.cluster)
            var options = cluster.options
            options.results.storeTimeout = .milliseconds(200)
            let worker = try await Worker.start(options, log: Log(level: .info, sink: sink), metrics: Metrics())
            await worker.ready()
            let ids = (0..<300).map { "\($0)" }
            func submit(_ ids: ArraySlice<String>) async throws {
                for id in ids {
                    try await cluster.submit(
                        #"{"id":"\#(id)","source":"\#(origin.url("/\(id)"))","width":64,"height":64}"#)
                }
            }
            try await submit(ids.prefix(150))
            try await until("some jobs have ended") { cluster.events.terminal.count >= 30 }
            await redisCluster.kill(1)
            try await submit(ids.dropFirst(150))
            try await until("all jobs have ended") { Set(cluster.events.terminal.map(\.jobID)).count == ids.count }

            // Results on the other primaries are stored; the rest are in their events.
            var (stored, carried) = (0, 0)
            for event in cluster.events.terminal {
                #expect(event.kind == "ready", "\(event.message)")
                let isStored = try? await cluster.client.send("EXISTS", .string(event.key)).integer
                if isStored == 1 { stored += 1 }
                if event.variant["data"] != nil { carried += 1 } else { #expect(isStored != 0) }
            }
            #expect(stored > 100 && carried > 10)
            let loss = "a primary of the Redis cluster is unavailable; the others continue to serve"
            try await until("the loss is logged") { sink.count(loss) >= 1 }

            try await redisCluster.revive(1)
            try await until("the worker has reconnected") {
                sink.records.last { [loss, "connected to Redis"].contains($0.message) }?.message != loss
            }
            try await cluster.submit(#"{"id":"after","source":"\#(origin.url("/after"))","width":64,"height":64}"#)
            #expect(try await cluster.events.terminal(of: "after").data["expiresAt"] != nil)
            #expect(await worker.shutdown(gracePeriod: .seconds(60)) == 0)
            // Each job still has exactly one terminal event at the end.
            #expect(cluster.events.terminal.map(\.jobID).sorted() == (ids + ["after"]).sorted())
        }
        try await origin.stop()
    }

    @Test func sendsResultsInlineWithoutRedis() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            cluster.redis.process.send(SIGKILL)
            await cluster.redis.process.exit()
            try await cluster.withWorker({ $0.results.storeTimeout = .milliseconds(200) }) {
                try await cluster.submit(#"{"id":"a","source":"\#(origin.url("/a"))","width":64,"height":64}"#)
                let event = try await cluster.events.terminal(of: "a")
                #expect(event.kind == "ready" && event.variant["data"] != nil && event.data["expiresAt"] == nil)
            }
        }
        try await origin.stop()
    }

    @Test func sendsResultsInlineWhenRedisIsFull() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with(redisArguments: ["--maxmemory", "100kb", "--maxmemory-policy", "noeviction"]) {
            cluster in
            try await cluster.withWorker {
                try await cluster.submit(#"{"id":"a","source":"\#(origin.url("/a"))","width":64,"height":64}"#)
                let event = try await cluster.events.terminal(of: "a")
                #expect(event.kind == "ready" && event.variant["data"] != nil)
            }
        }
        try await origin.stop()
    }

    @Test func failsLargeResultsWhenRedisIsFull() async throws {
        let origin = try SampleImages.origin()
        let sink = RecordingLogSink()
        try await WorkerFixture.with(redisArguments: ["--maxmemory", "100kb", "--maxmemory-policy", "noeviction"]) {
            cluster in
            try await cluster.withWorker(log: Log(level: .info, sink: sink), { $0.results.inlineLimit = 100 }) {
                try await cluster.submit(#"{"id":"a","source":"\#(origin.url("/a"))","width":64,"height":64}"#)
                let event = try await cluster.events.terminal(of: "a")
                #expect(event.code == "internal" && event.message.contains("could not be stored"))
                // The reply of Redis appears only in the log.
                #expect(!"\(event.json)".contains("OOM"))
            }
        }
        let line = try await sink.first("job failed")
        #expect(line.fields["code"] == .string("internal"))
        #expect(line.fields["cause_type"] == .string(#"RedisError.server("OOM")"#))
        guard case .string(let cause) = line.fields["cause"] else { return #expect(Bool(false), "there is no cause") }
        #expect(cause.hasPrefix("OOM command not allowed"))
        try await origin.stop()
    }
}
