/// How long each stage took for one job, in milliseconds; a stage that was not entered is absent.
public struct Timings: Hashable, Sendable {
    /// The stages, in the order of the line.
    public enum Stage: Int, CaseIterable, Sendable {
        case queued, waited, fetch, decode, process, encode, store, total

        /// As events name it. Written out: reflection, as in "\\(self)", would take as long as the rest of an event.
        public var name: String {
            switch self {
            case .queued: "queued"
            case .waited: "waited"
            case .fetch: "fetch"
            case .decode: "decode"
            case .process: "process"
            case .encode: "encode"
            case .store: "store"
            case .total: "total"
            }
        }
    }

    // -1 for a stage that was not entered. Eight fields and no vector of eight: Swift 6.3 reserves too little memory for what is aligned to
    // more than 16 bytes and lives across an await, and writes beyond it.
    private var queued = -1.0, waited = -1.0, fetch = -1.0, decode = -1.0
    private var process = -1.0, encode = -1.0, store = -1.0, total = -1.0

    /// Nothing measured yet.
    public init() {}

    /// Milliseconds of a stage. Less than 0, as when two machines' clocks disagree, counts as 0.
    public subscript(stage: Stage) -> Double? {
        get {
            let milliseconds = value(of: stage)
            return milliseconds < 0 ? nil : milliseconds
        }
        set {
            let milliseconds = newValue.map { max(0, $0) } ?? -1
            switch stage {
            case .queued: queued = milliseconds
            case .waited: waited = milliseconds
            case .fetch: fetch = milliseconds
            case .decode: decode = milliseconds
            case .process: process = milliseconds
            case .encode: encode = milliseconds
            case .store: store = milliseconds
            case .total: total = milliseconds
            }
        }
    }

    private func value(of stage: Stage) -> Double {
        switch stage {
        case .queued: queued
        case .waited: waited
        case .fetch: fetch
        case .decode: decode
        case .process: process
        case .encode: encode
        case .store: store
        case .total: total
        }
    }

    /// Takes over what was measured there.
    public mutating func merge(_ other: Timings) {
        for stage in Stage.allCases { if let milliseconds = other[stage] { self[stage] = milliseconds } }
    }
}
