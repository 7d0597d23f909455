import FoundationEssentials
import Processes

extension MessageSocket.Message {
    /// A message with a value as its header.
    init(_ value: some Encodable, _ bodies: [[UInt8]]) throws {
        self.init(header: [UInt8](try JSONEncoder().encode(value)), bodies: bodies)
    }

    /// The value that the header holds.
    func value<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try JSONDecoder().decode(type, from: Data(header))
    }
}
