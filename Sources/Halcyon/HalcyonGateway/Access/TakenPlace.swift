import HTTPServer
import Threads

/// A place among others that are bounded in number. Whoever lets go of it last gives it back, however the request ends.
final class TakenPlace: Sendable {
    private let back: Lock<(@Sendable () -> Void)?>

    /// A place that has been taken.
    /// - Parameter back: called once, when it is given back.
    init(givingBack back: @escaping @Sendable () -> Void) { self.back = Lock(back) }

    deinit { giveBack() }

    /// Gives it back; a second time does nothing.
    func giveBack() {
        let back = back.withLock { $0.take() }
        back?()
    }

    /// The answer to a request of this method, which holds the place while it is streamed. An answer that is there as a whole holds none: what
    /// is left to do is the door's.
    func held(by response: HTTPServer.Response, to method: String) -> HTTPServer.Response {
        guard case .stream(let length, let produce) = response.body, method != "HEAD" else {
            giveBack()
            return response
        }
        var response = response
        response.body = .stream(length: length) { [self] writer in
            // Before the client sees the end, which may come again at once.
            defer { giveBack() }
            try await produce(writer)
        }
        return response
    }
}
