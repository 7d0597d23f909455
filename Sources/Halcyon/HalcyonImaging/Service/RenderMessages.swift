import FoundationEssentials
import HalcyonModel
import Processes
import Vips

/// What a child is asked to do. Beside it go the bytes of the source, and then those of the assets.
struct RenderRequest: Codable {
    var limits: ImageLimits
    /// Bytes of memory that the rendering may take.
    var memory: Int
    var variants: [Variant]
    /// What the bytes behind the source's are of.
    private var assets: [Source]
    /// The formats that may be read, by their names.
    var formats: Set<String>

    /// The message that asks for it.
    static func message(_ order: Turn.Order, within limits: ImageLimits, memory: Int) throws -> MessageSocket.Message {
        let assets = Array(order.assets)
        let request = RenderRequest(
            limits: limits, memory: memory, variants: order.variants, assets: assets.map(\.key),
            formats: Set(VipsLibrary.allowed.map(\.rawValue)))
        return try MessageSocket.Message(request, [order.source] + assets.map(\.value))
    }

    /// Looks at headers, on the calling thread.
    /// - Throws: ``Failure``.
    func plan(_ source: [UInt8], _ extensions: Extensions) throws(Failure) -> (Renderer, RenderPlan) {
        let formats = Set(formats.compactMap(Format.init(rawValue:)))
        if VipsLibrary.allowed != formats { VipsLibrary.allow(formats) }
        let renderer = Renderer(limits: limits, extensions: extensions)
        return (renderer, try renderer.plan(renderer.identify(source), variants))
    }

    /// The bytes of what is laid over the source.
    func assets(_ bodies: [[UInt8]]) -> [Source: [UInt8]] {
        Dictionary(uniqueKeysWithValues: zip(assets, bodies.dropFirst()))
    }
}

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

extension MessageSocket.Message {
    /// A message with a value as its header.
    init(_ value: some Encodable, _ bodies: [[UInt8]]) throws {
        self.init(header: [UInt8](try JSONEncoder().encode(value)), bodies: bodies)
    }

    /// The value that the header holds.
    func value<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try JSONDecoder().decode(type, from: Data(header))
    }
}
