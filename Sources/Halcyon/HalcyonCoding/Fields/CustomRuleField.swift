import Formats
import HalcyonModel
import JSON

extension CustomExtension {
    /// The maximum size of the parameters, in bytes of compact JSON.
    public static let longestParameters = 16 << 10
}

extension JSONElement {
    /// Returns the parameters of a registered extension as compact JSON. The members of each object are sorted by the
    /// bytes of their names, so that equal parameters have equal cache keys.
    func ruleParameters() throws(JSONError) -> String {
        guard kind == .object else { throw JSONError(.wrongType, "expected an object of parameters") }
        var writer = JSONWriter(capacity: 256)
        try writer.sorted(self)
        guard writer.bytes.count <= CustomExtension.longestParameters else {
            throw JSONError(
                .invalid, "\(writer.bytes.count) bytes, and at most \(CustomExtension.longestParameters) are allowed")
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

extension JSONWriter {
    /// Writes a value with sorted members. The recursion depth is limited by the parser.
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
    /// Decodes a sizer: a name, or an object with one member that names it.
    /// - Parameter registered: The names of the host program's sizers.
    func sizer(registered: Set<String>) throws(JSONError) -> Sizing.Goal {
        guard kind == .object else {
            let word = try string()
            if word == "natural" { return .sizer(.natural) }
            if registered.contains(word) { return .custom(CustomExtension(name: word)) }
            throw JSONError(
                .invalid,
                "expected \"natural\", {\"aspectScaleDownByWidth\": n} or {\"aspectScaleDownByHeight\": n}, "
                    + "found \"\(word)\"")
        }
        var goal: Sizing.Goal?
        try forEachGiven { name, limit throws(JSONError) in
            guard goal == nil else { throw JSONError(.invalid, "is a second sizer; expected only one") }
            switch name {
            case "aspectScaleDownByWidth": goal = .sizer(.aspectScaleDownByWidth(try limit.points()))
            case "aspectScaleDownByHeight": goal = .sizer(.aspectScaleDownByHeight(try limit.points()))
            default:
                let name = "\(name)"
                guard registered.contains(name) else {
                    throw .noRule(name, "sizer", among: ownSizers + registered.sorted())
                }
                goal = .custom(CustomExtension(name: name, parameters: try limit.ruleParameters()))
            }
        }
        guard let goal else { throw JSONError(.missing, "expected an object that names a sizer") }
        return goal
    }
}

extension JSONError {
    /// The error for an unknown name.
    static func noRule(_ name: String, _ kind: String, among known: [String]) -> JSONError {
        let hint = suggestion(for: name, among: known).map { "did you mean \($0)?" }
        return JSONError(.unknown, "unknown \(kind); \(hint ?? "expected one of " + known.joined(separator: ", "))")
    }
}
