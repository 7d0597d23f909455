/// An error in a JSON text, with its location.
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of error.
    public enum Code: Sendable {
        /// The text exceeds the caller's size limit.
        case tooLarge
        /// Arrays and objects exceed the caller's nesting limit.
        case tooDeep
        /// The text is not JSON according to RFC 8259, or not valid UTF-8.
        case malformed
        /// A number is valid JSON but does not fit into 64 bits.
        case unreadableNumber
        /// A value does not have the expected type.
        case wrongType
        /// A value has the right type but is not allowed.
        case invalid
        /// A value is valid but requests something that is not supported.
        case unsupported
        /// A required member is missing.
        case missing
        /// A member is unknown.
        case unknown
        /// A name occurs twice in one object.
        case doubled
        /// No memory is available for parsing.
        case noMemory
    }

    /// The kind of error.
    public let code: Code
    /// The problem and the expected value, without the path: `expected a string`.
    public let message: String
    /// The path in the document, outermost step first: `variants[2].cropRect.width`. Empty for the whole document.
    public private(set) var path: String

    /// Creates an error at `path`, relative to the value that is read.
    public init(_ code: Code, _ message: String, path: String = "") {
        self.code = code
        self.message = message
        self.path = path
    }

    /// True only if memory was short: the same text causes all other errors again.
    public var isRetriable: Bool { code == .noMemory }

    /// The path and the message: `cropRect.width: expected a number`.
    public var description: String { path.isEmpty ? message : "\(path): \(message)" }

    /// Returns the error as seen from the enclosing value. `step` is a member's name or an index such as `[3]`.
    public func within(_ step: String) -> JSONError {
        let joint = path.isEmpty || path.hasPrefix("[") ? "" : "."
        return JSONError(code, message, path: step + joint + path)
    }
}
