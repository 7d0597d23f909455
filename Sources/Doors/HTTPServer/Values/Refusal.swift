extension HTTPServer {
    /// A request that the door does not hand to the handler, or an answer that it gives in the handler's place.
    public struct Refusal: Error, Hashable, Sendable {
        /// The status to answer with, 400 or above.
        public let status: Int
        /// What is wrong, for whoever sent the request. It tells nothing of the server's insides.
        public let reason: String

        /// A refusal with this status for this reason.
        public init(_ status: Int, _ reason: String) {
            self.status = status
            self.reason = reason
        }
    }

    /// Why a body could not be read, or written, to its end.
    public enum BodyError: Error, Hashable, Sendable {
        /// The request's body is larger than this many bytes. A handler that lets this pass answers 413.
        case tooLarge(limit: Int)
        /// The connection is gone, or the door has ended the request. Nobody sees what a handler answers now.
        case connectionLost
    }
}
