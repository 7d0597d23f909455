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

    /// Asks and waits for the answer.
    /// - Throws: ``MessageError`` when it dies meanwhile, and whatever else shows that it is out of its mind.
    func answer(_ request: RenderRequest, _ source: [UInt8]) throws -> (RenderReply, bodies: [[UInt8]]) {
        try socket.send(MessageSocket.Message(request, [source]))
        // No encoder makes more of a picture than its pixels at 16 bits a sample, and a little.
        let most = request.variants.count * (request.limits.outputPixels * 8 + 1 << 20)
        guard let message = try socket.receive(MessageSocket.Limits(bytes: most)) else { throw MessageError.ended }
        renderings.withLock { $0 += 1 }
        return (try message.value(RenderReply.self), message.bodies)
    }

    /// Ends it, wherever it is; from any thread.
    @Sendable func kill() { process.send(SIGKILL) }

    /// Waits for its end. It blocks.
    func exit() -> ChildProcess.Exit { process.exitBlocking() }
}
