/// A piece of work in a trace: what OpenTelemetry calls a span, as a value. It is made when the work has ended.
public struct Span: Sendable {
    /// What the work was to those on its other side. The raw values are OTLP's.
    public enum Kind: Int, Sendable {
        /// Of this process alone.
        case `internal` = 1
        /// An answer to a request.
        case server = 2
        /// A request to somebody else.
        case client = 3
        /// A message that was sent.
        case producer = 4
        /// A message that was taken.
        case consumer = 5
    }

    /// How it ended.
    public enum Status: Hashable, Sendable {
        /// Nothing to say.
        case unset
        /// It failed: why, in a word.
        case error(String)
    }

    /// Its own place.
    public var context: TraceContext
    /// The place of what caused it; nil when it begins its trace.
    public var parent: TraceContext?
    /// What was done, the same for all work of the kind.
    public var name: String
    /// What the work was to those on its other side.
    public var kind: Kind
    /// When it began, in nanoseconds since 1970.
    public var start: Int64
    /// When it ended, in nanoseconds since 1970; never before it began.
    public var end: Int64
    /// What else is known.
    public var attributes: SpanAttributes
    /// Other work that it had to do with.
    public var links: [TraceContext]
    /// How it ended.
    public var status: Status

    /// Takes the values as they are; an end before the start, as when a clock was set back, becomes the start.
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
