/// The context of a span, as propagated between processes (W3C Trace Context, level 1).
public struct TraceContext: Hashable, Sendable {
    private let trace: (high: UInt64, low: UInt64)
    private let span: UInt64
    /// True if the caller may have recorded its part of the trace.
    public let isSampled: Bool

    /// Creates the root context of a new trace, with random identifiers.
    public init(isSampled: Bool = true) {
        self.init(trace: (identifier(), identifier()), span: identifier(), isSampled: isSampled)
    }

    private init(trace: (high: UInt64, low: UInt64), span: UInt64, isSampled: Bool) {
        self.trace = trace
        self.span = span
        self.isSampled = isSampled
    }

    /// Creates the root context of a new trace that is sampled with the given probability. The decision depends only on
    /// the trace id, as with OpenTelemetry's ratio-based samplers.
    /// - Parameter ratio: The probability, 0 to 1.
    public init(recorded ratio: Double) {
        let start = TraceContext()
        // Uses the top bits, so that the product is precise enough for every ratio. The value is always below 1, so a
        // ratio of 1 samples all traces.
        let place = Double(start.trace.low >> 11) * 0x1p-53
        self.init(trace: start.trace, span: start.span, isSampled: place < ratio)
    }

    /// Returns a new context in the same trace, for work that this span caused.
    public func child() -> TraceContext {
        TraceContext(trace: trace, span: identifier(), isSampled: isSampled)
    }

    /// Parses a `traceparent` header; nil if it is invalid, in which case a new trace begins. Future versions are
    /// parsed as far as this one knows them, as the recommendation requires.
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

    /// The trace id: 32 lowercase hexadecimal digits.
    public var traceID: String { digits(trace.high) + digits(trace.low) }

    /// The span id: 16 lowercase hexadecimal digits.
    public var spanID: String { digits(span) }

    /// The value of the `traceparent` header.
    public var traceparent: String { "00-\(traceID)-\(spanID)-\(isSampled ? "01" : "00")" }

    /// True if the contexts are equal.
    public static func == (left: TraceContext, right: TraceContext) -> Bool {
        left.trace == right.trace && left.span == right.span && left.isSampled == right.isSampled
    }

    /// Hashes the context.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(trace.low)
        hasher.combine(span)
    }
}

/// A random identifier. It is never 0, which the recommendation reserves as invalid.
private func identifier() -> UInt64 { .random(in: 1 ... .max) }

private func digits(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
}

/// Parses up to 16 lowercase hexadecimal digits.
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
