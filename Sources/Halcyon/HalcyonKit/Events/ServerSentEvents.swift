import Foundation

/// Reads an event stream (HTML Living Standard, 9.2.6): bytes in, messages out.
struct ServerSentEvents {
    /// What one event of the stream says.
    struct Message: Equatable {
        /// `message` unless it is named.
        var name = "message"
        var data = ""
        /// Where to go on after it.
        var id = ""
    }

    /// More came without an end of the event than may.
    struct TooLarge: Error {}

    /// Where to go on: the id of the last event that came whole.
    private(set) var lastEventID: String
    /// The pause before coming back, in milliseconds, where the stream said so.
    private(set) var retry: Int?

    private let limit: Int
    private var line: [UInt8] = []
    private var skipsLineFeed = false
    private var current = Message()
    private var hasData = false
    private var id: String

    /// - Parameters:
    ///   - lastEventID: where the stream goes on; empty for a new one.
    ///   - limit: bytes of one event.
    init(lastEventID: String = "", limit: Int) {
        (self.lastEventID, id, self.limit) = (lastEventID, lastEventID, limit)
    }

    /// The messages that are whole with these bytes.
    mutating func take(_ bytes: some Sequence<UInt8>) throws -> [Message] {
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

    /// What the line says; the message, where it ended one.
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
