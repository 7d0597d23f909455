extension HTTPServer {
    /// What a handler does with a request.
    public enum Reply: Sendable {
        /// Answers at once, on the server's thread.
        case now(Response)
        /// Answers at once with what others are answered as well.
        case shared(SharedResponse)
        /// Answers when this has run, in a task of its own. An error that it throws is answered with 500, and
        /// ``BodyError/tooLarge(limit:)`` with 413.
        case later(@Sendable () async throws -> Response)
    }
}
