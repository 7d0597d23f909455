import HalcyonModel
import JSON

extension CustomRule {
    /// Bytes of the longest parameters taken, as compact JSON.
    public static let longestParameters = 16 << 10
}

extension JSONElement {
    /// The parameters of a rule that was registered by name: compact JSON, the members of each object in the order of their
    /// names' bytes, so that equal parameters are one key.
    func ruleParameters() throws(JSONError) -> String {
        guard kind == .object else { throw JSONError(.wrongType, "expected an object of parameters") }
        var writer = JSONWriter(capacity: 256)
        try writer.sorted(self)
        guard writer.bytes.count <= CustomRule.longestParameters else {
            throw JSONError(
                .invalid, "\(writer.bytes.count) bytes, and at most \(CustomRule.longestParameters) are taken")
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

extension JSONWriter {
    /// As deep as the parser goes.
    fileprivate mutating func sorted(_ value: JSONElement) throws(JSONError) {
        switch value.kind {
        case .object:
            var members: [(name: String, value: JSONElement)] = []
            try value.forEachMember { name, value throws(JSONError) in members.append(("\(name)", value)) }
            members.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
            try object { writer throws(JSONError) in
                for member in members {
                    writer.name(member.name)
                    do throws(JSONError) {
                        try writer.sorted(member.value)
                    } catch {
                        throw error.within(member.name)
                    }
                }
            }
        case .array:
            try array { writer throws(JSONError) in
                try value.forEachElement { element throws(JSONError) in try writer.sorted(element) }
            }
        default: self.value(value)
        }
    }
}
