import Foundation

/// A parser for event streams (HTML Living Standard, 9.2.6): bytes in, messages out.
struct ServerSentEvents {
    /// An event of the stream.
    struct Message: Equatable {
        /// The event's name, or `message` if it has none.
        var name = "message"
        var data = ""
        /// The position after the event.
        var id = ""
    }

    /// The event is larger than the limit.
    struct TooLarge: Error {}

    /// The id of the last complete event, after which the stream can be resumed.
    private(set) var lastEventID: String
    /// The pause before a reconnection in milliseconds, if the stream has set it.
    private(set) var retry: Int?

    private let limit: Int
    private var line: [UInt8] = []
    private var skipsLineFeed = false
    private var current = Message()
    private var hasData = false
    private var id: String

    /// - Parameters:
    ///   - lastEventID: The position after which the stream is resumed; empty for a new stream.
    ///   - limit: The maximum size of an event, in bytes.
    init(lastEventID: String = "", limit: Int) {
        (self.lastEventID, id, self.limit) = (lastEventID, lastEventID, limit)
    }

    /// The messages that these bytes complete.
    mutating func consume(_ bytes: some Sequence<UInt8>) throws -> [Message] {
        var messages: [Message] = []
        for byte in bytes {
            if byte == 10, skipsLineFeed {
                skipsLineFeed = false
                continue
            }
            skipsLineFeed = byte == 13
            guard byte == 10 || byte == 13 else {
                line.append(byte)
                if line.count + current.data.utf8.count > limit { throw TooLarge() }
                continue
            }
            if let message = endLine() { messages.append(message) }
            line.removeAll(keepingCapacity: true)
        }
        return messages
    }

    /// Processes the line.
    /// - Returns: The message, if the line ends one.
    private mutating func endLine() -> Message? {
        guard !line.isEmpty else {
            defer { (current, hasData) = (Message(), false) }
            lastEventID = id
            current.id = id
            return hasData ? current : nil
        }
        let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        var value = parts.count == 2 ? parts[1] : []
        if value.first == UInt8(ascii: " ") { value.removeFirst() }
        let text = String(decoding: value, as: UTF8.self)
        switch String(decoding: parts[0], as: UTF8.self) {
        case "event": current.name = text.isEmpty ? "message" : text
        case "data":
            current.data += (hasData ? "\n" : "") + text
            hasData = true
        case "id": if !value.contains(0) { id = text }
        case "retry":
            if text.utf8.count <= 9, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let time = Int(text) {
                retry = time
            }
        default: break
        }
        return nil
    }
}
