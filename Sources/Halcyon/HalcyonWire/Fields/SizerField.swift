import HalcyonModel
import JSON
import Values

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
