import Formats
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

private let ownSizers = ["natural", "aspectScaleDownByWidth", "aspectScaleDownByHeight"]

extension JSONElement {
    /// A sizer: a word, or an object of one member that names it.
    /// - Parameter registered: the names of the host program's own.
    func sizer(registered: Set<String>) throws(JSONError) -> Sizing.Goal {
        guard kind == .object else {
            let word = try string()
            if word == "natural" { return .sizer(.natural) }
            if registered.contains(word) { return .custom(CustomRule(name: word)) }
            throw JSONError(
                .invalid,
                "expected \"natural\", {\"aspectScaleDownByWidth\": n} or {\"aspectScaleDownByHeight\": n}, "
                    + "found \"\(word)\"")
        }
        var goal: Sizing.Goal?
        try forEachGiven { name, limit throws(JSONError) in
            guard goal == nil else { throw JSONError(.invalid, "is one sizer too many") }
            switch name {
            case "aspectScaleDownByWidth": goal = .sizer(.aspectScaleDownByWidth(try limit.points()))
            case "aspectScaleDownByHeight": goal = .sizer(.aspectScaleDownByHeight(try limit.points()))
            default:
                let name = "\(name)"
                guard registered.contains(name) else {
                    throw .noRule(name, "sizer", among: ownSizers + registered.sorted())
                }
                goal = .custom(CustomRule(name: name, parameters: try limit.ruleParameters()))
            }
        }
        guard let goal else { throw JSONError(.missing, "names no sizer") }
        return goal
    }
}

extension JSONError {
    /// Nothing has that name.
    static func noRule(_ name: String, _ kind: String, among known: [String]) -> JSONError {
        let hint = suggestion(for: name, among: known).map { "did you mean \($0)?" }
        return JSONError(.unknown, "is no \(kind); \(hint ?? "there are " + known.joined(separator: ", "))")
    }
}
