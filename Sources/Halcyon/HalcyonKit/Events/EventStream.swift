import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What a stream of events tells.
public struct StreamMessage: Sendable, Equatable {
    /// What it says.
    public enum Content: Sendable, Equatable {
        /// Something happened.
        case event(ImageEvent)
        /// Events that would come here were deleted before they could be sent; the reason is for people.
        case gap(String)
    }

    /// What it says.
    public let content: Content
    /// Where to go on after it: what `events(after:)` takes, also in another process and with another gateway.
    public let cursor: String

    /// What happened; nil of a gap.
    public var event: ImageEvent? { if case .event(let event) = content { event } else { nil } }
}

/// Which events a stream has: those that have, of each that is given, one of the values.
public struct EventFilter: Sendable, Equatable {
    /// A type of events.
    public struct EventType: RawRepresentable, Sendable, Hashable {
        /// The type without its prefix `halcyon.image.`.
        public let rawValue: String
        /// Creates a type that has no static member here.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The types of the event schema.
        public static let started = Self(rawValue: "started"), progress = Self(rawValue: "progress"),
            ready = Self(rawValue: "ready"), failed = Self(rawValue: "failed"),
            cancelled = Self(rawValue: "cancelled"), superseded = Self(rawValue: "superseded"),
            purged = Self(rawValue: "purged")
    }

    /// Types; ids of jobs; sources, as jobs gave them. What is empty lets all through.
    public var types: [EventType]
    /// Ids of jobs.
    public var jobs: [String]
    /// Sources, as jobs gave them.
    public var sources: [String]

    /// Lets all through but for what is given.
    public init(types: [EventType] = [], jobs: [String] = [], sources: [String] = []) {
        (self.types, self.jobs, self.sources) = (types, jobs, sources)
    }

    var query: [(name: String, value: String)] {
        let types = types.map(\.rawValue).joined(separator: ",")
        return (types.isEmpty ? [] : [("type", types)]) + jobs.map { ("job", $0) } + sources.map { ("source", $0) }
    }
}

/// Events as they happen. When the connection breaks, the stream comes back by itself, to whatever gateway answers, and goes on where it
/// was: nothing is missed, and nothing comes twice. It ends only by an error that will not pass, or with the task that reads it.
///
/// What the reader has not come to yet is at most twice ``ClientOptions/maximumEventBytes``; past that the connection is dropped, and taken
/// up again when the reader has come so far.
public struct EventStream: AsyncSequence, Sendable {
    /// What it tells.
    public typealias Element = StreamMessage

    let desk: Desk
    let filter: EventFilter
    let cursor: String

    /// Connects when the first event is asked for.
    public func makeAsyncIterator() -> Iterator {
        Iterator(desk: desk, filter: filter, cursor: cursor)
    }

    /// The reader's place in the stream.
    public struct Iterator: AsyncIteratorProtocol {
        private let desk: Desk
        private let filter: EventFilter
        private var parser: ServerSentEvents
        private var backOff: BackOff
        private var connection: Connection?
        private var messages: ArraySlice<ServerSentEvents.Message> = []

        init(desk: Desk, filter: EventFilter, cursor: String) {
            (self.desk, self.filter) = (desk, filter)
            parser = ServerSentEvents(lastEventID: cursor, limit: desk.options.maximumEventBytes)
            backOff = BackOff(base: .seconds(2), longest: desk.options.longestPause)
        }

        /// The next event.
        /// - Throws: `HalcyonError` that will not pass by itself; `CancellationError`.
        public mutating func next() async throws -> StreamMessage? {
            while true {
                if let message = messages.popFirst() {
                    if let message = try Self.read(message) { return message }
                    continue
                }
                try Task.checkCancellation()
                do { try await receive() } catch {
                    let pause = try pause(after: error)
                    if pause > .zero { try await Task.sleep(for: pause) }
                }
            }
        }

        /// Reads until the stream has said where it stands, and gives that back.
        /// - Throws: `HalcyonError`, also when no gateway has answered within ``ClientOptions/patience``; `CancellationError`.
        mutating func begin() async throws -> String {
            let end = ContinuousClock.now + desk.options.patience
            while parser.lastEventID.isEmpty {
                try Task.checkCancellation()
                do { try await receive() } catch {
                    let pause = try pause(after: error)
                    guard ContinuousClock.now + pause < end else {
                        throw (error as? Transfer.End).map { Desk.error(of: $0, limit: 0) } ?? error
                    }
                    try await Task.sleep(for: pause)
                }
            }
            return parser.lastEventID
        }

        private func connect() async throws -> Connection {
            var request = Request(path: ["events"], query: filter.query)
            request.fields = ["Accept": "text/event-stream", "Cache-Control": "no-store"]
            if !parser.lastEventID.isEmpty { request.fields["Last-Event-ID"] = parser.lastEventID }
            // One event always fits, and with it the reader always gets on.
            let limit = desk.options.maximumEventBytes + (256 << 10)
            let transfer = try desk.begin(request, .stream, limit: limit)
            let head = try await transfer.head()
            guard head.statusCode == 200 else {
                let body = try await Desk.body(of: transfer, limit: limit)
                throw Desk.problem(head, body)
            }
            guard head.mimeType == "text/event-stream" else {
                transfer.cancel()
                throw HalcyonError.notUnderstood("\(head.mimeType ?? "nothing") in place of an event stream")
            }
            return Connection(transfer)
        }

        private mutating func receive() async throws {
            let current = if let connection { connection } else { try await connect() }
            connection = current
            guard let part = try await current.transfer.next() else { throw Transfer.End.whole }
            backOff.reset()
            do { messages = try parser.take(part)[...] } catch is ServerSentEvents.TooLarge {
                throw HalcyonError.tooLarge(limit: desk.options.maximumEventBytes)
            }
            if let retry = parser.retry { backOff.base = .milliseconds(retry) }
        }

        /// How long to wait until it is tried again. What came of an event that did not come whole is forgotten; it comes again.
        /// - Throws: the error, where it will not pass by itself.
        private mutating func pause(after error: any Error) throws -> Duration {
            connection = nil
            parser = ServerSentEvents(lastEventID: parser.lastEventID, limit: desk.options.maximumEventBytes)
            switch error {
            case Transfer.End.cancelled: throw CancellationError()
            // The reader has come as far as was kept for it: it goes on at once.
            case Transfer.End.overflow: return .zero
            case is Transfer.End: return backOff.next()
            case HalcyonError.problem(let problem) where problem.isTransient:
                return backOff.next(atLeast: problem.retryAfter ?? .zero)
            default: throw error
            }
        }

        private static func read(_ message: ServerSentEvents.Message) throws -> StreamMessage? {
            if message.name == "gap" {
                struct Gap: Decodable { let reason: String }
                let reason = (try? JSONDecoder().decode(Gap.self, from: Data(message.data.utf8)))?.reason
                return StreamMessage(content: .gap(reason ?? message.data), cursor: message.id)
            }
            do {
                let event = try JSONDecoder().decode(ImageEvent.self, from: Data(message.data.utf8))
                return StreamMessage(content: .event(event), cursor: message.id)
            } catch {
                throw HalcyonError.notUnderstood("an event that is none: \(message.data.prefix(200))")
            }
        }
    }

    /// Ends the exchange when nobody reads it any more.
    private final class Connection: Sendable {
        let transfer: Transfer
        init(_ transfer: Transfer) { self.transfer = transfer }
        deinit { transfer.cancel() }
    }
}
