import HalcyonModel
import JSON

extension Source {
    /// A source as a text, or as an object of the kinds that have parameters.
    /// - Throws: ``JSONError``, `unsupported` for kinds and schemes that are not served.
    init(_ value: JSONElement) throws(JSONError) {
        if value.kind == .object {
            self = .initials(try Initials(value))
        } else {
            let text = try value.string()
            self = try checked { () throws(Failure) in try Source(text) }
        }
    }
}

extension Initials {
    fileprivate init(_ value: JSONElement) throws(JSONError) {
        guard let initials = value.member("initials") else {
            throw JSONError(
                .unsupported, "no provider for sources of this kind; a URL or {\"initials\": \"JD\"} is served")
        }
        var background: CSSColor?
        var foreground: CSSColor?
        try value.forEachMember { name, value throws(JSONError) in
            switch name {
            case "initials": _ = try value.string()
            case "background": background = try value.given?.color()
            case "foreground": foreground = try value.given?.color()
            default: throw JSONError(.unknown, "is no part of initials: initials, background, foreground")
            }
        }
        let text = try initials.string()
        self = try checked { () throws(Failure) in
            try Initials(text, background: background, foreground: foreground)
        }
    }
}

/// A value of the model that checks itself: its failure as that of a field.
private func checked<Value>(_ make: () throws(Failure) -> Value) throws(JSONError) -> Value {
    do {
        return try make()
    } catch {
        throw JSONError(error.code == .unsupportedSource ? .unsupported : .invalid, error.message)
    }
}
