/// Named values of a log record, in order; a name stands once and keeps its last value.
///
///     log.info("image ready", ["job": job.id, "bytes": body.count, "warm": true])
public struct LogFields: Sendable, ExpressibleByDictionaryLiteral {
    /// What a field may hold.
    public enum Scalar: Equatable, Sendable {
        /// Any text.
        case string(String)
        /// A whole number.
        case integer(Int64)
        /// A number; it may be infinite or none.
        case double(Double)
        /// True or false.
        case bool(Bool)
        /// Several of them, in order.
        case list([Scalar])
    }

    private var values = NamedValues<Scalar>()

    /// All of them, in order.
    var pairs: [NamedValues<Scalar>.Pair] { values.pairs }

    /// No fields.
    public init() {}

    /// The fields as they stand in the code; those that are nil are left out.
    public init(dictionaryLiteral elements: (String, any LogValue)...) {
        values = NamedValues(room: elements.count)
        for (name, value) in elements {
            if let value = value.logValue { self[name] = value }
        }
    }

    /// The value of a field; setting nil takes the field away.
    public subscript(name: String) -> Scalar? {
        get { values[name] }
        set { values[name] = newValue }
    }

    /// These fields and then `others`, whose values win.
    public func merging(_ others: LogFields) -> LogFields {
        var merged = self
        merged.values.merge(others.values)
        return merged
    }
}

/// What may stand for a field's value in the code.
public protocol LogValue {
    /// The value; nil leaves the field out.
    var logValue: LogFields.Scalar? { get }
}

extension String: LogValue {
    /// Itself.
    public var logValue: LogFields.Scalar? { .string(self) }
}

extension Int: LogValue {
    /// Itself.
    public var logValue: LogFields.Scalar? { .integer(Int64(self)) }
}

extension Int64: LogValue {
    /// Itself.
    public var logValue: LogFields.Scalar? { .integer(self) }
}

extension Double: LogValue {
    /// Itself.
    public var logValue: LogFields.Scalar? { .double(self) }
}

extension Bool: LogValue {
    /// Itself.
    public var logValue: LogFields.Scalar? { .bool(self) }
}

extension Duration: LogValue {
    /// Seconds.
    public var logValue: LogFields.Scalar? { .double(self / .seconds(1)) }
}

extension Array: LogValue where Element: LogValue {
    /// A list of their values.
    public var logValue: LogFields.Scalar? { .list(compactMap(\.logValue)) }
}

extension Optional: LogValue where Wrapped: LogValue {
    /// The value, or no field at all.
    public var logValue: LogFields.Scalar? { flatMap(\.logValue) }
}
