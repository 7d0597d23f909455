/// For readers to whom a value of another type says as little as none.
extension JSONElement {
    /// The string; nil for a value of another type.
    public var asString: String? { try? string() }

    /// The whole number; nil for a value of another type, a fraction, or more than 64 bits.
    public var asInteger: Int64? { try? integer() }

    /// The number; nil for a value of another type.
    public var asDouble: Double? { try? double() }

    /// True or false; nil for a value of another type.
    public var asBool: Bool? { try? bool() }
}
