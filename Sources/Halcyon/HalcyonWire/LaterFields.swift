import JSON

/// Fields of the contract that this version cannot follow yet. Asking for what they do by default is fine; asking for more is a
/// clear error and not a silent loss.
enum LaterFields {
    /// Whether `name` is one of them.
    /// - Throws: ``JSONError`` when the value asks for something.
    static func takes(_ name: JSONName, _ value: JSONElement) throws(JSONError) -> Bool {
        let isDefault: Bool
        switch name {
        case "gravity": isDefault = (try? value.string()) == "center"
        case "background": isDefault = (try? value.string()) == "transparent"
        case "stripMetadata": isDefault = (try? value.bool()) == true
        case "keepProfile": isDefault = (try? value.bool()) == false
        case "upscale", "processors", "frames", "variants", "cache", "slot", "generation", "tags", "webhook", "headers",
            "tenant":
            isDefault = value.isNull
        default: return false
        }
        guard isDefault else { throw JSONError(.invalid, "is not supported by this version of Halcyon") }
        return true
    }
}
