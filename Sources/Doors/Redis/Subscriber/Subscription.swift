/// A message of a channel.
public struct RedisMessage: Hashable, Sendable {
    /// The channel it was published to.
    public let channel: String
    /// What was published.
    public let payload: [UInt8]

    /// A message with these parts.
    public init(channel: String, payload: [UInt8]) {
        self.channel = channel
        self.payload = payload
    }
}

/// One caller of `subscribe`: first it waits for the server's word, then it has a stream.
///
/// `@unchecked Sendable`: the caller makes it and hands it in; from then on it is touched on the loop's thread alone. Before it
/// has come there, a cancellation touches nothing but ``isHandedIn``, which only the loop sets.
final class Subscription: @unchecked Sendable {
    typealias Messages = AsyncStream<RedisMessage>
    typealias Continuation = CheckedContinuation<Result<Messages, RedisError>, Never>

    let channel: String
    private let limit: Int
    private let onLeave: @Sendable (Subscription) -> Void
    /// Whether the loop has it.
    var isHandedIn = false
    private var caller: Continuation?
    private var sink: Messages.Continuation?

    /// - Parameters:
    ///   - onLeave: called on any thread when nobody reads the stream any more.
    init(_ channel: String, limit: Int, onLeave: @escaping @Sendable (Subscription) -> Void) {
        self.channel = channel
        self.limit = limit
        self.onLeave = onLeave
    }

    /// The caller waits from now on.
    func wait(_ continuation: Continuation) { caller = continuation }

    /// Whether the caller waits for the server's word.
    var isWaiting: Bool { caller != nil }

    /// The channel is subscribed to: a caller that waits gets its stream.
    func begin() {
        guard let caller else { return }
        let (stream, continuation) = Messages.makeStream(bufferingPolicy: .bufferingNewest(limit))
        continuation.onTermination = { [weak self] _ in
            if let self { onLeave(self) }
        }
        sink = continuation
        self.caller = nil
        caller.resume(returning: .success(stream))
    }

    /// Passes a message on, or keeps it until it is read.
    func deliver(_ message: RedisMessage) { sink?.yield(message) }

    /// Answers a caller that waits, or ends its stream.
    func end(_ error: RedisError) {
        caller?.resume(returning: .failure(error))
        caller = nil
        sink?.finish()
        sink = nil
    }
}
