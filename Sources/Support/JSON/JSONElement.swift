import CSimdJSON

/// A value of a parsed JSON text. It retains the document of the whole text.
///
/// The reading methods throw a ``JSONError`` without a path. ``forEachMember(_:)`` and ``forEachElement(_:)`` add their
/// step when an error passes through them, so that paths cost nothing without errors.
public struct JSONElement: Sendable {
    /// The six types of JSON.
    public enum Kind: String, Sendable {
        /// `null`.
        case null
        /// `true` or `false`.
        case bool
        /// Any number.
        case number
        /// A string.
        case string
        /// An array.
        case array
        /// An object.
        case object
    }

    private let document: JSONDocument
    private let value: csj_value

    init(_ document: JSONDocument) {
        self.init(document, document.root)
    }

    private init(_ document: JSONDocument, _ value: csj_value) {
        self.document = document
        self.value = value
    }

    /// The type of the value.
    public var kind: Kind {
        switch csj_kind_of(value) {
        case CSJ_OBJECT: .object
        case CSJ_ARRAY: .array
        case CSJ_STRING: .string
        case CSJ_INT64, CSJ_UINT64, CSJ_DOUBLE: .number
        case CSJ_BOOL: .bool
        default: .null
        }
    }

    /// True if the value is `null`.
    public var isNull: Bool { csj_kind_of(value) == CSJ_NULL }

    // MARK: Scalars

    /// Returns the string.
    /// - Throws: ``JSONError`` of code `wrongType` if the value is not a string.
    public func string() throws(JSONError) -> String {
        guard csj_kind_of(value) == CSJ_STRING else { throw wrongType(.string) }
        return withExtendedLifetime(document) { String(csj_string_of(value)) }
    }

    /// Returns the Boolean.
    /// - Throws: ``JSONError`` of code `wrongType` if the value is neither `true` nor `false`.
    public func bool() throws(JSONError) -> Bool {
        guard csj_kind_of(value) == CSJ_BOOL else { throw wrongType(.bool) }
        return csj_bool(value)
    }

    /// Returns the double nearest to the number.
    /// - Throws: ``JSONError`` of code `wrongType` if the value is not a number.
    public func double() throws(JSONError) -> Double {
        switch csj_kind_of(value) {
        case CSJ_DOUBLE: return csj_double(value)
        case CSJ_INT64: return Double(csj_int64(value))
        case CSJ_UINT64: return Double(csj_uint64(value))
        default: throw wrongType(.number)
        }
    }

    /// Returns the whole number. `400.0` and `4e2` are whole numbers too, as in JSON Schema.
    /// - Throws: ``JSONError`` of code `wrongType` if the value is not a number, `invalid` if it has a fraction or is
    ///   out of `range`.
    public func integer(in range: ClosedRange<Int64> = .min ... .max) throws(JSONError) -> Int64 {
        let number: Int64?
        switch csj_kind_of(value) {
        case CSJ_INT64: number = csj_int64(value)
        case CSJ_DOUBLE: number = Int64(exactly: csj_double(value))
        case CSJ_UINT64: number = nil
        default: throw wrongType(.number)
        }
        guard let number else { throw JSONError(.invalid, "expected a whole number") }
        guard range.contains(number) else {
            let limits =
                range.upperBound == .max ? "at least \(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
            throw JSONError(.invalid, "expected \(limits), found \(number)")
        }
        return number
    }

    // MARK: Arrays and objects

    /// Returns the first member of that name; nil if there is none or the value is not an object.
    public func member(_ name: String) -> JSONElement? {
        var name = name
        var found = csj_value()
        let isThere = name.withUTF8 { csj_member(value, $0.baseAddress, $0.count, &found) }
        return isThere ? JSONElement(document, found) : nil
    }

    /// Calls `body` with each member in the order of the text, and adds the member's name to the path of its errors.
    /// - Throws: ``JSONError`` of code `wrongType` if the value is not an object, `doubled` if a name occurs twice
    ///   (found before `body` is called), and the errors of `body`.
    public func forEachMember(_ body: (JSONName, JSONElement) throws(JSONError) -> Void) throws(JSONError) {
        guard csj_kind_of(value) == CSJ_OBJECT else { throw wrongType(.object) }
        var name = csj_string()
        if csj_doubled_name(value, &name) { throw JSONError(.doubled, "duplicate name", path: String(name)) }
        var cursor = csj_members(value)
        var member = csj_value()
        while csj_next_member(&cursor, &name, &member) {
            do {
                try body(JSONName(document, name), JSONElement(document, member))
            } catch {
                throw error.within(String(name))
            }
        }
    }

    /// Calls `body` with each element in order, and adds the element's index to the path of its errors.
    /// - Throws: ``JSONError`` of code `wrongType` if the value is not an array, and the errors of `body`.
    public func forEachElement(_ body: (JSONElement) throws(JSONError) -> Void) throws(JSONError) {
        guard csj_kind_of(value) == CSJ_ARRAY else { throw wrongType(.array) }
        var cursor = csj_elements(value)
        var element = csj_value()
        var index = 0
        while csj_next_element(&cursor, &element) {
            do {
                try body(JSONElement(document, element))
            } catch {
                throw error.within("[\(index)]")
            }
            index += 1
        }
    }

    // MARK: Back to text

    /// The value as compact JSON. Order and duplicate names are preserved, and numbers are written as they were parsed.
    public var bytes: [UInt8] {
        var writer = JSONWriter(capacity: 64)
        writer.value(self)
        return writer.bytes
    }

    private func wrongType(_ expected: Kind) -> JSONError {
        func article(_ kind: Kind) -> String {
            switch kind {
            case .null: "null"
            case .bool: "true or false"
            case .array, .object: "an \(kind.rawValue)"
            case .number, .string: "a \(kind.rawValue)"
            }
        }
        return JSONError(.wrongType, "expected \(article(expected)), found \(article(kind))")
    }
}

extension JSONElement: JSONWritable {
    /// Writes the value; see ``bytes``.
    public func write(to writer: inout JSONWriter) {
        withExtendedLifetime(document) { writeValue(to: &writer) }
    }

    private func writeValue(to writer: inout JSONWriter) {
        switch csj_kind_of(value) {
        case CSJ_INT64: writer.value(csj_int64(value))
        case CSJ_UINT64: writer.value(csj_uint64(value))
        case CSJ_DOUBLE: writer.value(csj_double(value))
        case CSJ_BOOL: writer.value(csj_bool(value))
        case CSJ_STRING: writer.value(utf8: csj_string_of(value).utf8)
        case CSJ_ARRAY:
            writer.array { writer in
                var cursor = csj_elements(value)
                var element = csj_value()
                while csj_next_element(&cursor, &element) { writer.value(JSONElement(document, element)) }
            }
        case CSJ_OBJECT:
            writer.object { writer in
                var cursor = csj_members(value)
                var name = csj_string()
                var member = csj_value()
                while csj_next_member(&cursor, &name, &member) {
                    writer.name(utf8: name.utf8)
                    JSONElement(document, member).write(to: &writer)
                }
            }
        default: writer.null()
        }
    }
}

extension csj_string {
    /// The bytes, valid as long as the document.
    fileprivate var utf8: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: bytes, count: length) }
}

extension String {
    init(_ string: csj_string) { self.init(decoding: string.utf8, as: UTF8.self) }
}

/// Accessors for readers that treat a value of another type like a missing one.
extension JSONElement {
    /// The string; nil for a value of another type.
    public var asString: String? { try? string() }

    /// The whole number; nil for a value of another type, a fraction, or more than 64 bits.
    public var asInteger: Int64? { try? integer() }

    /// The number; nil for a value of another type.
    public var asDouble: Double? { try? double() }

    /// The Boolean; nil for a value of another type.
    public var asBool: Bool? { try? bool() }
}
