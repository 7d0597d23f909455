import Threads

/// The conversation with a sentinel: it says when a service has another master
/// (https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/, "Pub/Sub messages").
final class SwitchListener: Conversation {
    var hasSwitched: (RedisAddress) -> Void = { _ in }
    var hasFailed: (RedisError) -> Void = { _ in }
    private let service: String
    private let pulse: Pulse

    init(_ service: String, _ settings: RedisSettings, on loop: EventLoop) {
        self.service = service
        pulse = Pulse(settings, on: loop)
    }

    func opened(_ connection: Connection) {
        connection.send(["SUBSCRIBE", "+switch-master"])
        pulse.begin(connection)
    }

    func received(_ reply: RedisValue) {
        guard let parts = reply.array, parts.count == 3, parts[0].string == "message", let text = parts[2].string else {
            return
        }
        // <service> <old host> <old port> <new host> <new port>
        let words = text.split(separator: " ").map(String.init)
        guard words.count == 5, words[0] == service, let address = RedisAddress(words[3...].map { $0 }) else { return }
        hasSwitched(address)
    }

    func lost(_ error: RedisError) {
        pulse.end()
        hasFailed(error)
    }

    func closed() { pulse.end() }
}
