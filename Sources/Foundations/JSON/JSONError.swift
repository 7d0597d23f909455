/// Why a JSON text was refused, and where.
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What kind of fault it is.
    public enum Code: Sendable {
        /// More bytes than the caller allows.
        case tooLarge
        /// Arrays and objects nest deeper than the caller allows.
        case tooDeep
        /// Not JSON as RFC 8259 has it, or not valid UTF-8.
        case malformed
        /// A number that JSON allows and 64 bits do not hold.
        case unreadableNumber
        /// A value of another type than the one asked for.
        case wrongType
        /// A value of the right type that may not be.
        case invalid
        /// A value that is right and asks for what there is not.
        case unsupported
        /// A member that must be there and is not.
        case missing
        /// A member that nobody asked for.
        case unknown
        /// A name that stands twice in one object.
        case doubled
        /// No memory to parse with.
        case noMemory
    }

    /// What kind of fault it is.
    public let code: Code
    /// What was found and expected, without the path: `expected a string`.
    public let message: String
    /// Where in the document, outermost first: `variants[2].cropRect.width`. Empty for the whole.
    public private(set) var path: String

    /// An error at `path`, seen from the value it was thrown for.
    public init(_ code: Code, _ message: String, path: String = "") {
        self.code = code
        self.message = message
        self.path = path
    }

    /// The same text at the same place fails again, except for want of memory.
    public var isRetriable: Bool { code == .noMemory }

    /// `cropRect.width: expected a number`.
    public var description: String { path.isEmpty ? message : "\(path): \(message)" }

    /// The same error, seen from one level further out: `step` is a member's name or an index such as `[3]`.
    public func within(_ step: String) -> JSONError {
        let joint = path.isEmpty || path.hasPrefix("[") ? "" : "."
        return JSONError(code, message, path: step + joint + path)
    }
}
