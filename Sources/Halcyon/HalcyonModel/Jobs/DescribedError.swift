/// An error in words, for a log: its kind and its text. An error that comes from another process is known by these
/// alone.
public struct DescribedError: Error, Hashable, Codable, CustomStringConvertible {
    /// The type's name, and its code if it has one, such as `RedisError.timeout`.
    public let kind: String
    /// The error's own text, shortened; the causes of a ``Failure`` follow it in parentheses.
    public let text: String

    /// Describes any error; one that is described already stays as it is.
    public init(_ error: any Error) {
        switch error {
        case let described as DescribedError: self = described
        case let failure as Failure:
            kind = "Failure.\(failure.code.rawValue)"
            let cause = failure.cause.map { " (\(DescribedError($0)))" } ?? ""
            text = Failure.shortened(failure.message + cause)
        default:
            let code = Mirror(reflecting: error).children.first { $0.label == "code" }
            kind = "\(type(of: error))" + (code.map { ".\($0.value)" } ?? "")
            text = Failure.shortened("\(error)")
        }
    }

    /// The kind, then the text.
    public var description: String { "\(kind): \(text)" }
}
