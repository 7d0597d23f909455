import Digests
import HalcyonModel
import HalcyonWire
import JSON

/// What the command line reads of an event.
struct EventView: Sendable {
    /// An output that is ready.
    struct Output: Sendable {
        let key: String
        let width: Int
        let height: Int
        let format: ImageFormat?
        let bytes: Int
        /// Of an animation.
        let frames: Int?
        let blurhash: String?
        let dominantColor: String?
        /// The file, when the event carries it.
        let data: [UInt8]?
    }

    /// How a job ended. There is at least one output.
    enum Ending: Sendable {
        case ready([Output])
        /// With a code and a message; jobs that were cancelled or superseded have the kind for a code.
        case failed(code: String, message: String)
    }

    /// Behind the prefix `halcyon.image.`.
    let type: String
    let subject: String?
    let jobID: String?
    /// nil while the job goes on.
    let ending: Ending?
    /// Milliseconds from the worker's taking the job to its end.
    let total: Double?

    /// nil for what is no event of Halcyon.
    init?(json: [UInt8]) {
        // Deeper than a job may be, for what a job wants given back stands inside.
        guard let root = try? JSON.parse(json, maximumSize: 64 << 20, maximumDepth: 64),
            let type = root.text("type"), type.hasPrefix(Event.typePrefix), let data = root.member("data")
        else { return nil }
        self.type = String(type.dropFirst(Event.typePrefix.count))
        subject = root.text("subject")
        jobID = data.member("job")?.text("id")
        total = data.member("timings")?.member("total").flatMap { try? $0.double() }
        switch Event.Kind(rawValue: self.type) {
        case .ready: ending = Output.all(in: data).map { .ready($0) }
        case .failed: ending = .failed(code: data.text("code") ?? "internal", message: data.text("message") ?? "")
        case let kind? where kind.isTerminal: ending = .failed(code: kind.rawValue, message: "")
        default: ending = nil
        }
    }
}

extension EventView.Output {
    /// The variants of a ready event; nil where there is none.
    fileprivate static func all(in data: JSONElement) -> [EventView.Output]? {
        var outputs: [EventView.Output] = []
        try? data.member("variants")?.forEachElement { variant in
            if let output = EventView.Output(variant) { outputs.append(output) }
        }
        return outputs.isEmpty ? nil : outputs
    }

    private init?(_ variant: JSONElement) {
        guard let key = variant.text("key") else { return nil }
        self.key = key
        width = variant.whole("width")
        height = variant.whole("height")
        format = variant.text("format").flatMap(ImageFormat.init(rawValue:))
        bytes = variant.whole("bytes")
        frames = variant.member("frames") == nil ? nil : variant.whole("frames")
        blurhash = variant.text("blurhash")
        dominantColor = variant.text("dominantColor")
        data = variant.text("data").flatMap(Base64.decode)
    }
}

extension JSONElement {
    fileprivate func text(_ name: String) -> String? { member(name).flatMap { try? $0.string() } }
    fileprivate func whole(_ name: String) -> Int {
        Int(member(name).flatMap { try? $0.integer(in: 0...Int64.max) } ?? 0)
    }
}
