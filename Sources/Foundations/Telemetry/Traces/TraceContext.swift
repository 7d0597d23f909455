/// The place of a piece of work in a trace, as handed from process to process (W3C Trace Context, level 1).
public struct TraceContext: Hashable, Sendable {
    private let trace: (high: UInt64, low: UInt64)
    private let span: UInt64
    /// Whether who handed it on may have recorded its part.
    public let isSampled: Bool

    /// The first place of a new trace, by the system's random numbers.
    public init(isSampled: Bool = true) {
        self.init(trace: (identifier(), identifier()), span: identifier(), isSampled: isSampled)
    }

    private init(trace: (high: UInt64, low: UInt64), span: UInt64, isSampled: Bool) {
        self.trace = trace
        self.span = span
        self.isSampled = isSampled
    }

    /// The first place of a new trace, one of which part is recorded. What is decided follows from the trace's name alone, as OpenTelemetry's
    /// samplers by ratio do it.
    /// - Parameter ratio: 0 to 1.
    public init(recorded ratio: Double) {
        let start = TraceContext()
        // The top bits, so that the product is exact enough for every ratio; below 1 always, for at 1 all are recorded.
        let place = Double(start.trace.low >> 11) * 0x1p-53
        self.init(trace: start.trace, span: start.span, isSampled: place < ratio)
    }

    /// A place of its own in the same trace, for work that this one caused.
    public func child() -> TraceContext {
        TraceContext(trace: trace, span: identifier(), isSampled: isSampled)
    }

    /// Reads a `traceparent` header; nil when it is not one, and then a new trace begins. Versions to come are read as
    /// far as this one knows them, as the recommendation asks.
    public init?(traceparent: String) {
        let text = Array(traceparent.utf8)
        let dash = UInt8(ascii: "-")
        guard text.count >= 55, text[2] == dash, text[35] == dash, text[52] == dash,
            let version = hexadecimal(text[0..<2]), version != 0xff,
            text.count == 55 || (version > 0 && text[55] == dash),
            let high = hexadecimal(text[3..<19]), let low = hexadecimal(text[19..<35]), high != 0 || low != 0,
            let span = hexadecimal(text[36..<52]), span != 0,
            let flags = hexadecimal(text[53..<55])
        else { return nil }
        self.init(trace: (high, low), span: span, isSampled: flags & 1 == 1)
    }

    /// The trace: 32 lowercase hexadecimal digits.
    public var traceID: String { digits(trace.high) + digits(trace.low) }

    /// The place in it: 16 lowercase hexadecimal digits.
    public var spanID: String { digits(span) }

    /// The `traceparent` header.
    public var traceparent: String { "00-\(traceID)-\(spanID)-\(isSampled ? "01" : "00")" }

    /// Whether both name the same place.
    public static func == (left: TraceContext, right: TraceContext) -> Bool {
        left.trace == right.trace && left.span == right.span && left.isSampled == right.isSampled
    }

    /// Hashes the place.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(trace.low)
        hasher.combine(span)
    }
}

/// Never 0, which the recommendation keeps for "none".
private func identifier() -> UInt64 { .random(in: 1 ... .max) }

private func digits(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
}

/// Lowercase digits alone, at most 16 of them.
private func hexadecimal(_ digits: ArraySlice<UInt8>) -> UInt64? {
    var value: UInt64 = 0
    for digit in digits {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt64(digit - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt64(digit - UInt8(ascii: "a") + 10)
        default: return nil
        }
    }
    return value
}
