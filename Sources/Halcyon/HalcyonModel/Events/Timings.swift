/// The duration of each stage of a job, in milliseconds. Stages that were not entered are absent.
public struct Timings: Hashable, Sendable {
    /// The stages of a job, in the order of the pipeline.
    public enum Stage: Int, CaseIterable, Sendable {
        case queued, waited, fetch, decode, process, encode, store, total

        /// The name in events. A switch is used because reflection, as in "\\(self)", would double the cost of encoding
        /// an event.
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

    // -1 for a stage that was not entered. Eight fields instead of a SIMD vector: Swift 6.3 allocates too little memory
    // for values that are aligned to more than 16 bytes and live across an await, and writes out of bounds.
    private var queued = -1.0, waited = -1.0, fetch = -1.0, decode = -1.0
    private var process = -1.0, encode = -1.0, store = -1.0, total = -1.0

    /// Creates timings without measurements.
    public init() {}

    /// The duration of a stage in milliseconds. Negative values, caused by clock differences between machines, are
    /// stored as 0.
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

    /// Copies all measured stages of another value.
    public mutating func merge(_ other: Timings) {
        for stage in Stage.allCases { if let milliseconds = other[stage] { self[stage] = milliseconds } }
    }
}
