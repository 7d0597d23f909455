import HalcyonImaging
import HalcyonModel
import Processes

/// What a child answers: what memory it needs, and when it has that, what came of the request. The files go beside it.
struct RenderReply: Codable {
    private enum Outcome: Codable {
        case needs(memory: Int)
        /// The bodies are taken out of the images.
        case rendered(Rendering)
        case failed(Failure)
    }

    private var outcome: Outcome
    /// Memory that the child holds now, in bytes.
    let residentBytes: Int

    /// Bytes that it is going to need, where that is what it says.
    var memory: Int? {
        guard case .needs(let memory) = outcome else { return nil }
        return memory
    }

    /// The message that says what it is going to need, in bytes.
    static func message(needing memory: Int, residentBytes: Int) throws -> MessageSocket.Message {
        try MessageSocket.Message(RenderReply(outcome: .needs(memory: memory), residentBytes: residentBytes), [])
    }

    /// The message that tells what came of it.
    static func message(
        _ result: Result<Rendering, Failure>, residentBytes: Int
    ) throws -> MessageSocket.Message {
        switch result {
        case .success(var rendering):
            let bodies = rendering.images.map(\.body)
            for index in bodies.indices { rendering.images[index].body = [] }
            return try MessageSocket.Message(
                RenderReply(outcome: .rendered(rendering), residentBytes: residentBytes), bodies)
        case .failure(let failure):
            return try MessageSocket.Message(
                RenderReply(outcome: .failed(failure), residentBytes: residentBytes), [])
        }
    }

    /// What came of the request; nil when bodies and descriptions do not match, and when nothing has come of it yet.
    func result(_ bodies: [[UInt8]]) -> Result<Rendering, Failure>? {
        switch outcome {
        case .needs: return nil
        case .failed(let failure): return .failure(failure)
        case .rendered(var rendering):
            guard rendering.images.count == bodies.count else { return nil }
            for index in bodies.indices { rendering.images[index].body = bodies[index] }
            return .success(rendering)
        }
    }
}
