/// Any JSON value.
public enum JSONValue: Sendable, Hashable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number.
    case number(Double)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object.
    case object([String: JSONValue])

    /// An object without the members that are nil.
    init(members: [String: JSONValue?]) { self = .object(members.compactMapValues { $0 }) }
}

extension JSONValue: Codable {
    /// Decodes any value.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        // A decoder tells the type of a value only by refusing the others.
        func decoded<Value: Decodable>(_ type: Value.Type) -> Value? { try? container.decode(type) }
        if container.decodeNil() {
            self = .null
        } else if let value = decoded(Bool.self) {
            self = .bool(value)
        } else if let value = decoded(Double.self) {
            self = .number(value)
        } else if let value = decoded(String.self) {
            self = .string(value)
        } else if let value = decoded([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    /// Encodes the value itself, without its case.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}

extension JSONValue: ExpressibleByBooleanLiteral, ExpressibleByFloatLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
    /// Creates `null`.
    public init(nilLiteral: ()) { self = .null }
    /// Creates `true` or `false`.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates a number.
    public init(integerLiteral value: Int) { self = .number(Double(value)) }
    /// Creates a number.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// Creates a string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates an array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// Creates an object. Of members with the same name, the last one counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { $1 })
    }
}

extension RawRepresentable where Self: Codable, RawValue == JSONValue {
    /// Decodes the raw value.
    public init(from decoder: any Decoder) throws {
        guard let value = Self(rawValue: try JSONValue(from: decoder)) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "unexpected JSON"))
        }
        self = value
    }

    /// Encodes the raw value.
    public func encode(to encoder: any Encoder) throws { try rawValue.encode(to: encoder) }
}
