/// An OpenTelemetry span as a value. It is created when the work has ended.
public struct Span: Sendable {
    /// The role of the work in its communication with others. The raw values are OTLP's.
    public enum Kind: Int, Sendable {
        /// Work inside this process.
        case `internal` = 1
        /// The handling of an incoming request.
        case server = 2
        /// An outgoing request.
        case client = 3
        /// The sending of a message.
        case producer = 4
        /// The processing of a received message.
        case consumer = 5
    }

    /// The status of the work.
    public enum Status: Hashable, Sendable {
        /// No status.
        case unset
        /// The work failed, with a short reason.
        case error(String)
    }

    /// The span's context.
    public var context: TraceContext
    /// The context of the parent; nil for a root span.
    public var parent: TraceContext?
    /// The name of the operation, the same for all work of its kind.
    public var name: String
    /// The role of the work in its communication with others.
    public var kind: Kind
    /// The start time in nanoseconds since 1970.
    public var start: Int64
    /// The end time in nanoseconds since 1970, never before the start.
    public var end: Int64
    /// Further attributes.
    public var attributes: SpanAttributes
    /// Contexts of related work.
    public var links: [TraceContext]
    /// The status of the work.
    public var status: Status

    /// Creates a span. An end before the start, for example after a clock was set back, becomes the start.
    public init(
        _ name: String, _ kind: Kind = .internal, context: TraceContext, parent: TraceContext?, start: Int64,
        end: Int64, attributes: SpanAttributes = SpanAttributes(), links: [TraceContext] = [], status: Status = .unset
    ) {
        self.context = context
        self.parent = parent
        self.name = name
        self.kind = kind
        self.start = start
        self.end = max(start, end)
        self.attributes = attributes
        self.links = links
        self.status = status
    }
}

/// Attributes of a span or a process, in order. Names are unique.
public struct SpanAttributes: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    /// A value of an attribute.
    public enum Scalar: Hashable, Sendable {
        /// Any text.
        case string(String)
        /// A whole number.
        case integer(Int64)
        /// A Boolean.
        case bool(Bool)
    }

    private var values = AttributeMap<Scalar>()

    /// All attributes, in order.
    var pairs: [AttributeMap<Scalar>.Pair] { values.pairs }

    /// Creates empty attributes.
    public init() {}

    /// Creates attributes from a literal. Values that are nil are left out, and the last value of a name wins.
    public init(dictionaryLiteral elements: (String, (any SpanValue)?)...) {
        values = AttributeMap(room: elements.count)
        for (name, value) in elements { if let value { self[name] = value.spanValue } }
    }

    /// The value of a name. Setting nil removes it.
    public subscript(name: String) -> Scalar? {
        get { values[name] }
        set { values[name] = newValue }
    }

    /// Merges `others`, whose values win.
    public mutating func merge(_ others: SpanAttributes) { values.merge(others.values) }
}

/// A type whose values can be used as attributes in a literal.
public protocol SpanValue {
    /// The value.
    var spanValue: SpanAttributes.Scalar { get }
}

extension String: SpanValue {
    /// The string.
    public var spanValue: SpanAttributes.Scalar { .string(self) }
}

extension Int: SpanValue {
    /// The integer.
    public var spanValue: SpanAttributes.Scalar { .integer(Int64(self)) }
}

extension Int64: SpanValue {
    /// The integer.
    public var spanValue: SpanAttributes.Scalar { .integer(self) }
}

extension Bool: SpanValue {
    /// The Boolean.
    public var spanValue: SpanAttributes.Scalar { .bool(self) }
}
