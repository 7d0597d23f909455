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

    /// One name and its value.
    struct Pair: Hashable, Sendable {
        let name: String
        var value: Scalar
    }

    private(set) var pairs: [Pair] = []

    /// None.
    public init() {}

    /// As they stand in the code; those that are nil are left out, and the last one of a name counts.
    public init(dictionaryLiteral elements: (String, (any SpanValue)?)...) {
        pairs.reserveCapacity(elements.count)
        for (name, value) in elements { if let value { self[name] = value.spanValue } }
    }

    /// The value of a name; setting nil takes it away.
    public subscript(name: String) -> Scalar? {
        get { pairs.first { $0.name == name }?.value }
        set {
            let place = pairs.firstIndex { $0.name == name }
            switch (place, newValue) {
            case (let place?, let value?): pairs[place].value = value
            case (let place?, nil): pairs.remove(at: place)
            case (nil, let value?): pairs.append(Pair(name: name, value: value))
            case (nil, nil): break
            }
        }
    }

    /// Takes over `others`, whose values win.
    public mutating func merge(_ others: SpanAttributes) {
        for pair in others.pairs { self[pair.name] = pair.value }
    }
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
