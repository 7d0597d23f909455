/// Why a server could not be started.
public struct HTTPServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What happened.
    public let description: String

    init(_ description: String) { self.description = description }
}
