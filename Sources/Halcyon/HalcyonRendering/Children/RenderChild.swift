import CLinux
import Glibc
import HalcyonImaging
import HalcyonModel
import Processes
import Threads

/// A child process that renders one picture at a time. One thread at a time talks to it.
final class RenderChild: Sendable {
    /// How often the memory of a child that renders is looked at, in milliseconds.
    private static let watchInterval: Int32 = 20

    private let process: ChildProcess
    private let socket: MessageSocket
    private let renderings = Lock(0)
    private let baseMemory: Int

    /// Starts it. It blocks.
    /// - Throws: ``ChildProcessError``, ``MessageError``.
    init(_ options: RenderChildOptions, hears: @escaping @Sendable (String) -> Void) throws {
        let (own, childs) = try MessageSocket.pair()
        defer { close(childs) }
        socket = own
        baseMemory = options.baseMemory
        process = try ChildProcess.startBlocking(
            options.program, options.arguments, options: options.process(input: childs, hears: hears))
    }

    /// For tests and logs.
    var pid: Int32 { process.pid }
    var isRunning: Bool { process.isRunning }
    /// How many it has answered.
    var answered: Int { renderings.withLock { $0 } }

    /// Asks and waits for the answer.
    /// - Parameter memory: bytes that the rendering may take.
    /// - Throws: ``MessageError``, `ended` when it dies meanwhile; ``OutgrownMemory`` when it takes more memory; whatever else shows that it is out of its mind.
    func answer(
        _ order: Turn.Order, within limits: ImageLimits, memory: Int
    ) throws -> (answer: RenderReply.Answer, privateBytes: Int) {
        try socket.send(RenderRequest.message(order, within: limits, memory: memory))
        // An eighth and 16 MiB more: the memory is an estimate.
        try wait(allowing: memory + memory / 8 + baseMemory + order.bytes + (16 << 20))
        // No encoder makes more of a picture than its pixels at 16 bits a sample, and a little.
        let most = order.variants.count * (limits.outputPixels * 8 + 1 << 20)
        guard let message = try socket.receive(MessageSocket.Limits(bytes: most)) else { throw MessageError.ended }
        let reply = try message.value(RenderReply.self)
        guard let answer = reply.answer(message.bodies) else { throw MismatchedReply() }
        renderings.withLock { $0 += 1 }
        return (answer, reply.privateBytes)
    }

    /// Waits for the answer, and looks meanwhile how much memory the child holds. The system's limit (``GrantedMemory``) counts what is
    /// reserved, touched or not, and has to be wider; and some libraries that are refused memory go on and write a damaged file.
    private func wait(allowing bytes: Int) throws(OutgrownMemory) {
        while !socket.hasInput(within: Self.watchInterval) {
            // The shadow of a sanitizer is larger than any picture.
            guard clinux_has_sanitizer() || privateBytes(of: process.pid) <= bytes else { throw OutgrownMemory() }
        }
    }

    /// Ends it, wherever it is; from any thread.
    @Sendable func kill() { process.send(SIGKILL) }

    /// Waits for its end. It blocks.
    func exit() -> ChildProcess.Exit { process.exitBlocking() }
}

/// A child holds more memory than its rendering was given.
struct OutgrownMemory: Error {}

/// A child described other pictures than it sent.
private struct MismatchedReply: Error {}
