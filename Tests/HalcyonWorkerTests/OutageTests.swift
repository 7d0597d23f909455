import Glibc
import HalcyonWorker
import Processes
import Redis
import Telemetry
import TestSupport
import Testing

@Suite(.takesTurns) struct OutageTests {
    @Test func redisAwayForAWhileLosesNoJobAndIsSaidOnce() async throws {
        let origin = try Photograph.origin()
        let notes = Notes()
        try await Stage.with { stage in
            let worker = try await Worker.start(stage.options, log: Log(level: .info, sink: notes), metrics: Metrics())
            await worker.ready()
            stage.redis.process.send(SIGKILL)
            await stage.redis.process.exit()
            for number in 0..<20 {
                try await stage.submit(
                    #"{"id":"\#(number)","source":"\#(origin.url("/\(number)"))","width":64,"height":64}"#)
            }
            // Nothing may claim to be stored while there is nowhere to store it.
            try await Task.sleep(for: .seconds(1))
            let again = try await RedisServer.start(port: stage.redis.port)
            try await until("the test's own client is connected again") {
                try await stage.client.send("PING").string == "PONG"
            }
            for number in 0..<20 {
                let event = try await stage.events.terminal(of: "\(number)")
                #expect(event.kind == "ready")
                let isStored = try await stage.client.send("EXISTS", .string(event.key)).integer == 1
                #expect(isStored || event.variant["data"] != nil)
            }
            try await stage.submit(#"{"id":"after","source":"\#(origin.url("/0"))","width":32,"height":32}"#)
            #expect(try await stage.events.terminal(of: "after").data["expiresAt"] != nil)
            #expect(notes.count("Redis is away; waiting for it") == 1)
            #expect(notes.count("connected to Redis") == 2)
            #expect(await worker.drain(grace: .seconds(60)) == 0)
            await again.stop()
        }
        try await origin.stop()
    }

    @Test func aLostMasterOfAClusterLosesNoJob() async throws {
        let origin = try Photograph.origin()
        let notes = Notes()
        try await Stage.with(redis: .cluster) { stage in
            let cluster = try #require(stage.deployment.cluster)
            var options = stage.options
            options.results.patience = .milliseconds(200)
            let worker = try await Worker.start(options, log: Log(level: .info, sink: notes), metrics: Metrics())
            await worker.ready()
            let ids = (0..<300).map { "\($0)" }
            for id in ids {
                try await stage.submit(#"{"id":"\#(id)","source":"\#(origin.url("/\(id)"))","width":64,"height":64}"#)
            }
            try await until("some jobs have ended") { stage.events.terminal.count >= 30 }
            await cluster.kill(1)
            #expect(stage.events.terminal.count < ids.count, "all were over before it was killed")
            try await until("all jobs have ended") { Set(stage.events.terminal.map(\.jobID)).count == ids.count }

            // What lies on the other masters is found there, and what does not is in its event.
            var (stored, carried) = (0, 0)
            for event in stage.events.terminal {
                #expect(event.kind == "ready", "\(event.message)")
                let isStored = try? await stage.client.send("EXISTS", .string(event.key)).integer
                if isStored == 1 { stored += 1 }
                if event.variant["data"] != nil { carried += 1 } else { #expect(isStored != 0) }
            }
            #expect(stored > 100 && carried > 10)
            #expect(notes.count("a master of the Redis cluster is away; the others serve on") == 1)

            try await cluster.revive(1)
            try await until("it is noticed") { notes.count("connected to Redis") == 2 }
            try await stage.submit(#"{"id":"after","source":"\#(origin.url("/after"))","width":64,"height":64}"#)
            #expect(try await stage.events.terminal(of: "after").data["expiresAt"] != nil)
            #expect(await worker.drain(grace: .seconds(60)) == 0)
            // Every job has its one event, also when all is over.
            #expect(stage.events.terminal.map(\.jobID).sorted() == (ids + ["after"]).sorted())
        }
        try await origin.stop()
    }

    @Test func withoutRedisResultsComeInTheirEvents() async throws {
        let origin = try Photograph.origin()
        try await Stage.with { stage in
            stage.redis.process.send(SIGKILL)
            await stage.redis.process.exit()
            try await stage.withWorker({ $0.results.patience = .milliseconds(200) }) {
                try await stage.submit(#"{"id":"a","source":"\#(origin.url("/a"))","width":64,"height":64}"#)
                let event = try await stage.events.terminal(of: "a")
                #expect(event.kind == "ready" && event.variant["data"] != nil && event.data["expiresAt"] == nil)
            }
        }
        try await origin.stop()
    }

    @Test func aFullRedisFailsNoJob() async throws {
        let origin = try Photograph.origin()
        try await Stage.with(redisArguments: ["--maxmemory", "100kb", "--maxmemory-policy", "noeviction"]) { stage in
            try await stage.withWorker {
                try await stage.submit(#"{"id":"a","source":"\#(origin.url("/a"))","width":64,"height":64}"#)
                let event = try await stage.events.terminal(of: "a")
                #expect(event.kind == "ready" && event.variant["data"] != nil)
            }
        }
        try await origin.stop()
    }

    @Test func whatAFullRedisRefusesAndNoEventCanCarryFails() async throws {
        let origin = try Photograph.origin()
        let notes = Notes()
        try await Stage.with(redisArguments: ["--maxmemory", "100kb", "--maxmemory-policy", "noeviction"]) { stage in
            try await stage.withWorker(log: Log(level: .info, sink: notes), { $0.results.inlineLimit = 100 }) {
                try await stage.submit(#"{"id":"a","source":"\#(origin.url("/a"))","width":64,"height":64}"#)
                let event = try await stage.events.terminal(of: "a")
                #expect(event.code == "internal" && event.message.contains("could not be stored"))
                // What Redis said is for the log.
                #expect(!"\(event.json)".contains("OOM"))
            }
        }
        let line = try #require(notes.records.first { $0.message == "job failed" })
        #expect(line.fields["code"] == .string("internal"))
        #expect(line.fields["cause_type"] == .string(#"RedisError.server("OOM")"#))
        guard case .string(let cause) = line.fields["cause"] else { return #expect(Bool(false), "there is no cause") }
        #expect(cause.hasPrefix("OOM command not allowed"))
        try await origin.stop()
    }
}
