import Concurrency
import Glibc
import Subprocess
import Testing

@Suite struct MessageSocketTests {
    private func pair() throws -> (MessageSocket, MessageSocket) {
        let (own, childEnd) = try MessageSocket.pair()
        return (own, MessageSocket(owning: childEnd))
    }

    /// Receives a message on a separate thread, because sending may block until it is read.
    private func received(
        by socket: MessageSocket, _ limits: MessageSocket.Limits = .init(bytes: 1 << 30),
        while send: () throws -> Void
    ) throws -> Result<MessageSocket.Message?, MessageError> {
        let answer = BlockingPromise<Result<MessageSocket.Message?, MessageError>>()
        let reader = NamedThread(name: "reader") {
            do throws(MessageError) {
                answer.fulfill(.success(try socket.receive(limits)))
            } catch {
                answer.fulfill(.failure(error))
            }
        }
        try send()
        reader.join()
        return answer.wait()
    }

    @Test func transfersMessagesOfAnySize() throws {
        let (one, other) = try pair()
        let long = (0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        for bodies in [[], [[]], [long, [], [1]], Array(repeating: [9], count: 100)] as [[[UInt8]]] {
            let message = MessageSocket.Message(header: Array("header \(bodies.count)".utf8), bodies: bodies)
            let received = try received(by: other) { try one.send(message) }.get()
            #expect(received?.header == message.header && received?.bodies == bodies)
        }
    }

    @Test func distinguishesCloseFromTruncation() throws {
        var (one, other): (MessageSocket?, MessageSocket) = try pair()
        one = nil
        #expect(try other.receive(.init(bytes: 10)) == nil)
        #expect(throws: MessageError.ended) { try other.send(.init(header: [1])) }

        let (descriptor, reader): (Int32, MessageSocket)
        (one, descriptor) = try MessageSocket.pair()
        reader = one!
        var half: [UInt8] = [9, 0, 0, 0]
        #expect(write(descriptor, &half, 4) == 4)
        close(descriptor)
        #expect(throws: MessageError.ended) { try reader.receive(.init(bytes: 10)) }
    }

    @Test func rejectsMessagesBeyondTheLimits() throws {
        var limits = MessageSocket.Limits(bytes: 100)
        limits.header = 10
        limits.bodies = 2
        let bytes = [UInt8](repeating: 1, count: 60)
        for (header, bodies) in [(11, []), (1, [[], [], []]), (1, [bytes, bytes])] as [(Int, [[UInt8]])] {
            let (one, other) = try pair()
            let header = [UInt8](repeating: 0, count: header)
            let result = try received(by: other, limits) { try one.send(.init(header: header, bodies: bodies)) }
            #expect(throws: MessageError.tooLarge) { try result.get() }
        }
        // A length that exceeds any memory.
        let (reader, descriptor) = try MessageSocket.pair()
        var header = [UInt8]([0, 0, 0, 0, 1, 0, 0, 0]) + [UInt8](repeating: 0xff, count: 8)
        #expect(write(descriptor, &header, header.count) == header.count)
        #expect(throws: MessageError.tooLarge) { try reader.receive(.init(bytes: .max)) }
        close(descriptor)
    }

    @Test func childSharesTheSocketAndStreamsErrorLines() async throws {
        let (socket, childEnd) = try MessageSocket.pair()
        let (lines, line) = AsyncStream<String>.makeStream()
        var options = ChildProcess.Options()
        options.input = .descriptor(childEnd)
        options.errors = .lines { line.yield($0) }
        let child = try ChildProcess.startBlocking(
            "sh", ["-c", "echo one >&2; cat <&0 >&0 2>&0; printf 'two\nthree' >&2"], options: options)
        close(childEnd)
        let message = MessageSocket.Message(header: [1, 2, 3], bodies: [[4]])
        try socket.send(message)
        #expect(try socket.receive(.init(bytes: 10))?.bodies == [[4]])
        child.send(SIGKILL)
        #expect(child.exitBlocking() == .signal(SIGKILL))
        #expect(await lines.first { _ in true } == "one")
    }

    @Test func deliversUnterminatedLinesAndSplitsLongOnes() async throws {
        let (lines, line) = AsyncStream<String>.makeStream()
        var options = ChildProcess.Options()
        options.output = .lines { line.yield($0) }
        let child = try await ChildProcess.start(
            "sh", ["-c", "echo a; echo; head -c 10000 /dev/zero | tr '\\0' x; echo; printf end"], options: options)
        var received: [String] = []
        for await line in lines {
            received.append(line)
            if line == "end" { break }
        }
        #expect(received.prefix(2) == ["a", ""])
        let pieces = received.dropFirst(2).dropLast()
        #expect(pieces.joined() == String(repeating: "x", count: 10_000))
        await child.exit()
    }
}
