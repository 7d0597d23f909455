import JSON

/// Fields of the contract that this version cannot follow yet. Asking for what they do by default is fine, and so is null; asking
/// for more is a clear error and not a silent loss.
enum LaterFields {
    /// Whether `name` is one of them.
    static func names(_ name: JSONName) -> Bool {
        switch name {
        case "tags", "headers", "cache", "slot", "generation", "webhook", "tenant": true
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
        case "cache": isDefault = value.isDefaultCache
        case "slot", "generation", "webhook", "tenant": isDefault = false
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

    /// All tiers, and neither a fetch forced nor one forbidden.
    fileprivate var isDefaultCache: Bool {
        do {
            try forEachMember { name, value throws(JSONError) in
                let isDefault =
                    switch name {
                    case "memory", "source": try value.bool()
                    case "reload", "onlyIfCached": try !value.bool()
                    default: false
                    }
                guard isDefault else { throw JSONError(.invalid, "is not the default") }
            }
            return true
        } catch {
            return false
        }
    }
}
