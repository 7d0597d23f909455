import HalcyonImaging
import HalcyonModel
import Processes

/// The answer of a child to a request. The files go beside it.
struct RenderReply: Codable {
    /// The answer with its files.
    enum Answer {
        case rendered(Rendering)
        case failed(Failure)
        /// The rendering takes more memory than it was given; it can be asked for again with so many bytes.
        case needs(memory: Int)

        /// Bytes of the files.
        var bytes: Int {
            guard case .rendered(let rendering) = self else { return 0 }
            return rendering.images.reduce(0) { $0 + $1.body.count }
        }
    }

    private enum Outcome: Codable {
        /// The bodies are taken out of the images.
        case rendered(Rendering)
        case failed(Failure)
        case needs(memory: Int)
    }

    private var outcome: Outcome
    /// Memory of its own that the child holds now, in bytes.
    let privateBytes: Int

    /// The message that gives the answer.
    static func message(_ answer: Answer, privateBytes: Int) throws -> MessageSocket.Message {
        var bodies: [[UInt8]] = []
        let outcome: Outcome
        switch answer {
        case .rendered(var rendering):
            bodies = rendering.images.map(\.body)
            for index in bodies.indices { rendering.images[index].body = [] }
            outcome = .rendered(rendering)
        case .failed(let failure): outcome = .failed(failure)
        case .needs(let memory): outcome = .needs(memory: memory)
        }
        return try MessageSocket.Message(RenderReply(outcome: outcome, privateBytes: privateBytes), bodies)
    }

    /// The answer; nil when bodies and descriptions do not match.
    func answer(_ bodies: [[UInt8]]) -> Answer? {
        switch outcome {
        case .failed(let failure): return .failed(failure)
        case .needs(let memory): return .needs(memory: memory)
        case .rendered(var rendering):
            guard rendering.images.count == bodies.count else { return nil }
            for index in bodies.indices { rendering.images[index].body = bodies[index] }
            return .rendered(rendering)
        }
    }
}
