import Concurrency
import Glibc
import HalcyonCluster
import Kafka
import Measuring
import Subprocess
import TestSupport

/// What event streams cost: `EventsBenchmark HALCYON [CLIENTS [EVENTS [RATE]]]`.
///
/// HALCYON is the executable, run as a gateway on librdkafka's mock cluster and a redis-server. CLIENTS (2000) follow events of that one
/// gateway; then EVENTS (1000) are committed, RATE (100) a second, 0 for all at once. Prints how many clients have got each event
/// exactly once, the times from sending to receiving, the gateway's CPU time, and its memory for each client.
@main struct EventsBenchmark {
    static func main() async throws {
        let arguments = CommandLine.arguments
        func number(_ index: Int, _ usual: Int) -> Int? { arguments.count > index ? Int(arguments[index]) : usual }
        guard arguments.count > 1, let clients = number(2, 2000), let events = number(3, 1000),
            let rate = number(4, 100),
            clients > 0, events > 0, rate >= 0
        else {
            say("usage: EventsBenchmark HALCYON [CLIENTS [EVENTS [RATE]]]")
            exit(2)
        }
        var limit = rlimit(rlim_cur: rlim_t(clients + 1000), rlim_max: rlim_t(clients + 1000))
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let redis = try await RedisServer.start()
        let broker = try MockCluster()
        try await broker.createTopics(Topics().all, partitions: 4)
        let producer = try Producer(properties: ["bootstrap.servers": broker.bootstrapServers, "linger.ms": "0"])
        let port = LoopbackPort.reserve()
        var options = ChildProcess.Options()
        options.environment = [
            "HALCYON_KAFKA_BROKERS": broker.bootstrapServers, "HALCYON_REDIS_URL": "redis://127.0.0.1:\(redis.port)",
            "HALCYON_KAFKA_PROPERTY_fetch.wait.max.ms": "10", "HALCYON_LOG_LEVEL": "error",
            "HALCYON_GATEWAY_LISTEN": "127.0.0.1:\(port)", "HALCYON_GATEWAY_RATE": "1000000",
            "HALCYON_GATEWAY_BURST": "1000000", "HALCYON_GATEWAY_CLIENT_STREAMS": "100000",
            "HALCYON_GATEWAY_STREAMS": "100000", "HALCYON_GATEWAY_CONNECTIONS": "100000",
        ]
        options.errors = .inherited
        let gateway = try await ChildProcess.start(arguments[1], ["gateway"], options: options)
        let result: Result<Void, any Error>
        do {
            try await until("the gateway is ready") { try await RawClient(port).get("/readyz").status == 200 }
            result = .success(
                try await measure(
                    gateway.pid, port, producer, clients: clients, events: events, rate: rate))
        } catch {
            result = .failure(error)
        }
        _ = await gateway.stop()
        await producer.close()
        await broker.stop()
        await redis.stop()
        try result.get()
    }

    static func measure(
        _ gateway: pid_t, _ port: UInt16, _ producer: Producer, clients: Int, events: Int, rate: Int
    ) async throws {
        let empty = residentBytes(of: gateway)
        let listeners = Listeners(port: port, count: clients, events: events)
        defer { listeners.stop() }
        try await until("all streams are open", within: .seconds(300)) { listeners.begun == clients }
        let open = residentBytes(of: gateway)
        let processor = processorTime(of: gateway)
        let start = ContinuousClock.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<events {
                if rate > 0 { try await Task.sleep(until: start + .seconds(Double(number) / Double(rate))) }
                group.addTask {
                    listeners.sent(number)
                    try await producer.send(
                        ProducerRecord(topic: Topics().events, key: Array("\(number)".utf8), value: event(number)))
                }
            }
            try await group.waitForAll()
        }
        try? await until("all events have come", within: .seconds(120)) { listeners.received >= clients * events }
        // A moment for what would come twice.
        try await Task.sleep(for: .seconds(1))
        let used = processorTime(of: gateway) - processor
        let full = residentBytes(of: gateway)
        let found = listeners.found()
        say(
            "\(clients) clients, \(events) events of \(event(0).count) bytes, \(rate == 0 ? "all at once" : "\(rate) a second")"
        )
        say(
            "clients that got each event exactly once: \(found.complete); missing \(found.missing), twice \(found.twice)"
        )
        say(
            "from sending to receiving: p50 \(decimal(found.percentile(0.5), 1)) ms, p99 \(decimal(found.percentile(0.99), 1)) ms, "
                + "all \(decimal(found.percentile(1), 1)) ms")
        say(
            "the gateway's CPU time: \(decimal(used, 2)) s, \(decimal(used / Double(clients * events) * 1e6, 2)) µs an event and client"
        )
        say(
            "its memory: \(empty >> 10) KiB, with open streams \(open >> 10) KiB, after the events \(full >> 10) KiB; "
                + "a client \(decimal(Double(max(0, open - empty)) / Double(clients) / 1024, 1)) KiB, then "
                + "\(decimal(Double(max(0, full - empty)) / Double(clients) / 1024, 1)) KiB")
    }

    /// As long as most are.
    static func event(_ number: Int) -> [UInt8] {
        let key = "halcyon:{0123456789abcdef0123456789abcdef}:0123456789abcdef0123456789abcdef"
        let sha = String(repeating: "0123456789abcdef", count: 4)
        return Array(
            #"{"specversion":"1.0","id":"halcyon.jobs-0-\#(number)-ready","source":"/halcyon","type":"halcyon.image.ready","subject":"https://example.org/photographs/2026/\#(number).jpg","time":"2026-01-01T00:00:00.000Z","datacontenttype":"application/json","data":{"job":{"id":"\#(number)"},"key":"\#(key)","variants":[{"key":"\#(key)","width":400,"height":300,"format":"jpeg","bytes":23456,"sha256":"\#(sha)"}],"expiresAt":"2026-01-02T00:00:00.000Z","origin":"network","timings":{"queued":1.2,"fetch":20.3,"decode":3.1,"process":0.4,"encode":2.2,"store":0.6,"total":27.9},"source":{"status":200,"bytes":345678,"format":"jpeg","width":1600,"height":1200}}}"#
                .utf8)
    }
}
