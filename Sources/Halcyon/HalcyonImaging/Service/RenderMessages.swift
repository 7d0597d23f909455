import FoundationEssentials
import HalcyonModel
import Subprocess
import Vips

/// A request to a render process. The message also carries the bytes of the source and the assets.
struct RenderRequest: Codable {
    var limits: ImageLimits
    /// The maximum memory of the rendering, in bytes.
    var memory: Int
    var variants: [Variant]
    private var original: ArchivedOriginal?
    private var archive: ArchiveOptions?
    /// The sources of the assets, in the order of their bytes after the source.
    private var assets: [Source]
    /// The faces in the upright source by page; none for a page where they have not been looked for.
    var faces: [Int: [DetectedBox]]
    /// The names of the formats that may be read.
    var formats: Set<String>
    /// The folder of the fonts; nil for none.
    var fonts: String?

    /// Creates the message for a request.
    static func message(_ order: RenderTask.Input, within limits: ImageLimits, memory: Int) throws
        -> MessageSocket.Message
    {
        let assets = Array(order.assets)
        let request = RenderRequest(
            limits: limits, memory: memory, variants: order.variants, original: order.original, archive: order.archive,
            assets: assets.map(\.key), faces: order.faces,
            formats: Set(VipsLibrary.allowed.map(\.rawValue)), fonts: Fonts.folder)
        return try MessageSocket.Message(request, [order.source] + assets.map(\.value))
    }

    /// Reads the headers and plans the rendering on the calling thread.
    /// - Parameter bodies: The bytes of the source and of the assets.
    /// - Throws: ``JobError`` if the source cannot be rendered.
    func plan(_ bodies: [[UInt8]], _ extensions: Extensions) throws(JobError) -> (Renderer, RenderPlan) {
        let formats = Set(formats.compactMap(Format.init(rawValue:)))
        if VipsLibrary.allowed != formats { VipsLibrary.allow(formats) }
        if let fonts { Fonts.use(folder: fonts) }
        let renderer = Renderer(limits: limits, extensions: extensions)
        return (
            renderer,
            try renderer.plan(
                renderer.identify(bodies[0]), variants, assets: assets(bodies), original: original, archive: archive)
        )
    }

    /// Returns the bytes of the assets.
    func assets(_ bodies: [[UInt8]]) -> [Source: [UInt8]] {
        Dictionary(uniqueKeysWithValues: zip(assets, bodies.dropFirst()))
    }
}

/// The reply of a render process. The message also carries the files.
struct RenderReply: Codable {
    /// The reply with its files.
    enum RenderResponse {
        case rendered(RenderResult)
        case failed(JobError)
        /// The rendering needs more memory than it was given. It can be requested again with this number of bytes.
        case needs(memory: Int)

        /// The size of the files, in bytes.
        var bytes: Int {
            guard case .rendered(let rendering) = self else { return 0 }
            return rendering.images.reduce(0) { $0 + $1.body.count }
        }
    }

    private enum Outcome: Codable {
        /// The images without their bodies.
        case rendered(RenderResult)
        case failed(JobError)
        case needs(memory: Int)
    }

    private var outcome: Outcome
    /// The private memory of the render process, in bytes.
    let privateBytes: Int
    /// The memory that the render process has reserved, in bytes; 0 if it has no limit.
    let reservedBytes: Int

    /// Creates the message for a reply.
    static func message(
        _ answer: RenderResponse, privateBytes: Int, reservedBytes: Int
    ) throws -> MessageSocket.Message {
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
        let reply = RenderReply(outcome: outcome, privateBytes: privateBytes, reservedBytes: reservedBytes)
        return try MessageSocket.Message(reply, bodies)
    }

    /// Returns the reply, or nil if the number of bodies does not match.
    func answer(_ bodies: [[UInt8]]) -> RenderResponse? {
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
    /// Creates a message with a value as its header.
    init(_ value: some Encodable, _ bodies: [[UInt8]]) throws {
        self.init(header: [UInt8](try JSONEncoder().encode(value)), bodies: bodies)
    }

    /// Decodes the value in the header.
    func value<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try JSONDecoder().decode(type, from: Data(header))
    }
}
