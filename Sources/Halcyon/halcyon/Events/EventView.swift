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
        /// The file, when the event carries it.
        let data: [UInt8]?
    }

    /// How a job ended.
    enum Ending: Sendable {
        case ready(Output)
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
        case .ready: ending = Output(ready: data).map { .ready($0) }
        case .failed: ending = .failed(code: data.text("code") ?? "internal", message: data.text("message") ?? "")
        case let kind? where kind.isTerminal: ending = .failed(code: kind.rawValue, message: "")
        default: ending = nil
        }
    }
}

extension EventView.Output {
    /// The first variant of a ready event.
    fileprivate init?(ready data: JSONElement) {
        var first: JSONElement?
        try? data.member("variants")?.forEachElement { first = first ?? $0 }
        guard let first, let key = first.text("key") else { return nil }
        self.key = key
        width = first.whole("width")
        height = first.whole("height")
        format = first.text("format").flatMap(ImageFormat.init(rawValue:))
        bytes = first.whole("bytes")
        self.data = first.text("data").flatMap(Base64.decode)
    }
}

extension JSONElement {
    fileprivate func text(_ name: String) -> String? { member(name).flatMap { try? $0.string() } }
    fileprivate func whole(_ name: String) -> Int {
        Int(member(name).flatMap { try? $0.integer(in: 0...Int64.max) } ?? 0)
    }
}
