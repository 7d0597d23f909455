import JSON

/// Fields of the contract that this version cannot follow yet. Asking for what they do by default is fine, and so is null; asking
/// for more is a clear error and not a silent loss.
enum LaterFields {
    /// Whether `name` is one of them.
    static func names(_ name: JSONName) -> Bool {
        switch name {
        case "tags", "headers", "slot", "generation", "webhook": true
        default: false
        }
    }

    /// Whether `name` is one of them.
    /// - Throws: ``JSONError`` when the value asks for something.
    static func takes(_ name: JSONName, _ value: JSONElement) throws(JSONError) -> Bool {
        let isDefault: Bool
        switch name {
        case "tags": isDefault = value.reads("[]")
        case "headers": isDefault = value.reads("{}")
        case "slot", "generation", "webhook": isDefault = false
        default: return false
        }
        guard isDefault || value.isNull else {
            throw JSONError(.invalid, "is not supported by this version of Halcyon")
        }
        return true
    }
}

extension JSONElement {
    /// Whether the value is this one, as compact JSON.
    fileprivate func reads(_ json: String) -> Bool { bytes.elementsEqual(json.utf8) }
}
