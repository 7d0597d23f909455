import Concurrency
import Glibc
import Redis
import TestSupport
import Testing

/// Messages. Each test has its own subscriber.
@Suite(.limitedParallelism) struct SubscriberTests {
    @Test func deliversToEveryReaderOfAChannel() async throws {
        try await withSubscriber { _, client, subscriber in
            var readers: [AsyncStream<RedisMessage>.Iterator] = []
            for _ in 0..<3 { readers.append(try await subscriber.subscribe("news").makeAsyncIterator()) }
            var other = try await subscriber.subscribe("other").makeAsyncIterator()
            #expect(try await client.send("PUBLISH", "news", .bytes([0, 255])) == .integer(1))
            #expect(try await client.send("PUBLISH", "other", "second") == .integer(1))
            for index in readers.indices {
                #expect(await readers[index].next() == RedisMessage(channel: "news", payload: [0, 255]))
            }
            #expect(await other.next()?.payload == Array("second".utf8))
        }
    }

    @Test func unsubscribesWithTheLastReader() async throws {
        try await withSubscriber { _, client, subscriber in
            var first: AsyncStream<RedisMessage>? = try await subscriber.subscribe("news")
            var second: AsyncStream<RedisMessage>? = try await subscriber.subscribe("news")
            _ = (first, second)
            first = nil
            #expect(try await client.send("PUBLISH", "news", "a") == .integer(1))
            second = nil
            try await until("no subscriber is left") { try await client.send("PUBLISH", "news", "b") == .integer(0) }
            // Subscribes again at once: the server must have confirmed the new subscription, not the old one.
            for _ in 0..<100 {
                var stream = try await subscriber.subscribe("news").makeAsyncIterator()
                #expect(try await client.send("PUBLISH", "news", "c") == .integer(1))
                #expect(await stream.next()?.payload == Array("c".utf8))
            }
        }
    }

    @Test func cancellingTheReaderUnsubscribes() async throws {
        try await withSubscriber { _, client, subscriber in
            let isReading = Lock(false)
            let reader = Task {
                for await _ in try await subscriber.subscribe("news") { isReading.withLock { $0 = true } }
            }
            // The server knows of a subscription before the reader does.
            try await until("the reader receives messages") {
                _ = try await client.send("PUBLISH", "news", "a")
                return isReading.withLock { $0 }
            }
            reader.cancel()
            try await reader.value
            try await until("no subscriber is left") { try await client.send("PUBLISH", "news", "b") == .integer(0) }
        }
    }

    @Test func keepsTheNewestUnreadMessages() async throws {
        try await withSubscriber { _, client, subscriber in
            let stream = try await subscriber.subscribe("news", keeping: 2)
            for number in 1...5 { _ = try await client.send("PUBLISH", "news", .integer(number)) }
            // A message of another channel proves that the five have arrived.
            var after = try await subscriber.subscribe("after").makeAsyncIterator()
            _ = try await client.send("PUBLISH", "after", "")
            _ = await after.next()
            var reader = stream.makeAsyncIterator()
            #expect(await reader.next()?.payload == Array("4".utf8))
            #expect(await reader.next()?.payload == Array("5".utf8))
        }
    }

    @Test func resubscribesAfterTheServerWasKilled() async throws {
        try await withSubscriber { server, client, subscriber in
            let received = Lock<[[UInt8]]>([])
            let stream = try await subscriber.subscribe("news")
            let reader = Task { for await message in stream { received.withLock { $0.append(message.payload) } } }
            server.process.send(SIGKILL)
            await server.process.exit()
            let next = try await RedisServer.start(port: server.port)
            try await until("messages arrive again") {
                _ = try await client.send("PUBLISH", "news", "back")
                return received.withLock { $0.contains(Array("back".utf8)) }
            }
            reader.cancel()
            await next.stop()
        }
    }

    @Test func detectsSilentServer() async throws {
        let log = StateLog()
        var settings = shortTimeouts
        settings.commandTimeout = .seconds(4)
        try await withSubscriber(settings, onStateChange: log.record) { server, client, subscriber in
            let stream = try await firstValue("the subscription is confirmed") {
                try await subscriber.subscribe("news")
            }
            server.process.send(SIGSTOP)
            try await until("the lost connection is reported") { log.isLost }
            await expectFailure(.unavailable) { try await subscriber.subscribe("late") }
            server.process.send(SIGCONT)
            try await until("the client has reconnected") { log.states.last == .connected }
            #expect(log.isAlternating)
            // A quiet server that answers is not considered silent, unless the machine is too busy for it.
            try await until("the connection is kept") {
                let count = log.states.count
                try await Task.sleep(for: .seconds(5))
                return log.states.count == count
            }
            _ = stream
        }
    }

    @Test func usesOneConnectionForAllChannels() async throws {
        try await withSubscriber { _, client, subscriber in
            var streams: [AsyncStream<RedisMessage>] = []
            for number in 0..<500 { streams.append(try await subscriber.subscribe("c\(number)")) }
            let list = try await client.send("CLIENT", "LIST", "TYPE", "pubsub").string ?? ""
            #expect(list.split(separator: "\n").count == 1)
            #expect(list.contains("sub=501 "))
            streams = []
            try await until("all channels are unsubscribed") {
                try await client.send("CLIENT", "LIST", "TYPE", "pubsub").string?.contains("sub=1 ") == true
            }
        }
    }

    @Test func cancellationEndsTheWaitForConfirmation() async throws {
        try await withSubscriber { server, client, subscriber in
            _ = try await subscriber.subscribe("first")
            server.process.send(SIGSTOP)
            let task = Task { await expectFailure(.cancelled) { try await subscriber.subscribe("news") } }
            try await Task.sleep(for: .milliseconds(50))
            task.cancel()
            await task.value
            server.process.send(SIGCONT)
            try await until("no subscriber is left") { try await client.send("PUBLISH", "news", "b") == .integer(0) }
        }
    }

    @Test func closingEndsTheStreams() async throws {
        try await withSubscriber { _, _, subscriber in
            let stream = try await subscriber.subscribe("news")
            await subscriber.close()
            for await _ in stream {}
            await expectFailure(.closed) { try await subscriber.subscribe("news") }
        }
    }

    private func withSubscriber(
        _ settings: RedisSettings = quickReconnects, onStateChange: @escaping @Sendable (RedisState) -> Void = { _ in },
        _ body: (RedisServer, RedisClient, RedisSubscriber) async throws -> Void
    ) async throws {
        try await withRedis(settings: settings) { server, client in
            let subscriber = RedisSubscriber(
                RedisEndpoint(loopbackPort: server.port), settings: settings, onStateChange: onStateChange)
            let result: Result<Void, any Error>
            do { result = .success(try await body(server, client, subscriber)) } catch { result = .failure(error) }
            await subscriber.close()
            try result.get()
        }
    }
}
