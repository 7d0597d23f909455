/// What a span, or a process, says of itself: names and values in order, each name once.
public struct SpanAttributes: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    /// What an attribute may hold.
    public enum Scalar: Hashable, Sendable {
        /// Any text.
        case string(String)
        /// A whole number.
        case integer(Int64)
        /// True or false.
        case bool(Bool)
    }

    private var values = NamedValues<Scalar>()

    /// All of them, in order.
    var pairs: [NamedValues<Scalar>.Pair] { values.pairs }

    /// None.
    public init() {}

    /// As they stand in the code; those that are nil are left out, and the last one of a name counts.
    public init(dictionaryLiteral elements: (String, (any SpanValue)?)...) {
        values = NamedValues(room: elements.count)
        for (name, value) in elements { if let value { self[name] = value.spanValue } }
    }

    /// The value of a name; setting nil takes it away.
    public subscript(name: String) -> Scalar? {
        get { values[name] }
        set { values[name] = newValue }
    }

    /// Takes over `others`, whose values win.
    public mutating func merge(_ others: SpanAttributes) { values.merge(others.values) }
}

/// What may stand for an attribute's value in the code.
public protocol SpanValue {
    /// The value.
    var spanValue: SpanAttributes.Scalar { get }
}

extension String: SpanValue {
    /// Itself.
    public var spanValue: SpanAttributes.Scalar { .string(self) }
}

extension Int: SpanValue {
    /// Itself.
    public var spanValue: SpanAttributes.Scalar { .integer(Int64(self)) }
}

extension Int64: SpanValue {
    /// Itself.
    public var spanValue: SpanAttributes.Scalar { .integer(self) }
}

extension Bool: SpanValue {
    /// Itself.
    public var spanValue: SpanAttributes.Scalar { .bool(self) }
}
