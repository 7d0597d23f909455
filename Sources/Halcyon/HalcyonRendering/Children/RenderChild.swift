import Glibc
import HalcyonImaging
import HalcyonModel
import Processes
import Threads

/// A child process that renders one picture at a time. One thread at a time talks to it.
final class RenderChild: Sendable {
    private let process: ChildProcess
    private let socket: MessageSocket
    private let renderings = Lock(0)

    /// Starts it. It blocks.
    /// - Throws: ``ChildProcessError``, ``MessageError``.
    init(_ options: RenderChildOptions, hears: @escaping @Sendable (String) -> Void) throws {
        let (own, childs) = try MessageSocket.pair()
        defer { close(childs) }
        socket = own
        process = try ChildProcess.startBlocking(
            options.program, options.arguments, options: options.process(input: childs, hears: hears))
    }

    /// For tests and logs.
    var pid: Int32 { process.pid }
    var isRunning: Bool { process.isRunning }
    /// How many it has answered.
    var answered: Int { renderings.withLock { $0 } }

    /// Asks and waits for the answer. When the child has seen what it will take, it is given the memory or has to wait for it.
    /// - Throws: ``MessageError``, `ended` when it dies meanwhile; ``Turn/Stop`` when it was stopped while it waited; whatever else shows
    ///   that it is out of its mind.
    func answer(
        _ order: Turn.Order, within limits: ImageLimits, _ door: MemoryDoor
    ) throws -> (result: Result<Rendering, Failure>, residentBytes: Int) {
        try socket.send(RenderRequest.message(order, within: limits))
        // No encoder makes more of a picture than its pixels at 16 bits a sample, and a little.
        let most = order.variants.count * (limits.outputPixels * 8 + 1 << 20)
        var (reply, bodies) = try reply(of: most)
        var share: DecodingMemory.Share?
        defer { withExtendedLifetime(share) {} }
        if let memory = reply.memory {
            share = try door.enter(memory)
            try socket.send(RenderRequest.goOn)
            (reply, bodies) = try self.reply(of: most)
        }
        guard let result = reply.result(bodies) else { throw MismatchedReply() }
        renderings.withLock { $0 += 1 }
        return (result, reply.residentBytes)
    }

    private func reply(of most: Int) throws -> (RenderReply, bodies: [[UInt8]]) {
        guard let message = try socket.receive(MessageSocket.Limits(bytes: most)) else { throw MessageError.ended }
        return (try message.value(RenderReply.self), message.bodies)
    }

    /// Ends it, wherever it is; from any thread.
    @Sendable func kill() { process.send(SIGKILL) }

    /// Waits for its end. It blocks.
    func exit() -> ChildProcess.Exit { process.exitBlocking() }
}

/// A child described other pictures than it sent, or said twice what it would take.
private struct MismatchedReply: Error {}
