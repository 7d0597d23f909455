import CVips

/// What libvips, or this door, refused to do.
public struct VipsError: Error, Sendable, CustomStringConvertible {
    /// The kinds of refusal that a caller may tell apart.
    public enum Code: Sendable, Hashable {
        /// The bytes are of no format that ``VipsLibrary`` allows.
        case unsupportedFormat
        /// An operation said no: damaged input, or arguments that do not fit the image.
        case failed
        /// A ``Cancellation`` stopped the pipeline.
        case cancelled
        /// There is no such operation, or no such argument of that kind: a mistake in the program.
        case misuse
    }

    /// Which kind it is.
    public let code: Code
    /// The operation's name as libvips knows it, such as `resize`.
    public let operation: String
    /// For people. libvips keeps one error text for the whole process, so with several threads it may hold another
    /// operation's words too: never branch on it.
    public let message: String
    /// Whether the same call may succeed later. It cannot: libvips' answers depend on the bytes and arguments alone.
    public var isRetriable: Bool { false }

    /// The operation, then the message.
    public var description: String { "\(operation): \(message)" }

    init(_ code: Code, _ operation: String, _ message: String) {
        self.code = code
        self.operation = operation
        self.message = message
    }

    /// Some decoders fail without a word.
    private static let speechless = "it failed without a message: as a rule the picture is damaged"

    /// A failure in libvips' own words, taken out of its buffer.
    static func last(_ code: Code = .failed, in operation: String) -> VipsError {
        let text = vips_error_buffer_copy()
        defer { g_free(text) }
        let lines = text.map { String(cString: $0) } ?? ""
        let message = lines.split(separator: "\n").prefix(3).joined(separator: "; ")
        return VipsError(code, operation, message.isEmpty ? speechless : String(message.prefix(400)))
    }
}
