import HalcyonModel
import JSON

extension JobReader {
    /// A source as a text, or as an object of the kinds that have parameters.
    /// - Throws: ``JSONError``, `unsupported` for kinds and schemes that are not served.
    func source(_ value: JSONElement) throws(JSONError) -> Source {
        guard value.kind == .object else {
            let text = try value.string()
            return try checked { () throws(Failure) in try source(text) }
        }
        if value.member("initials")?.given != nil { return .initials(try Initials(value)) }
        if value.member("base64")?.given != nil { return .data(try DataSource(value)) }
        if value.member("video")?.given != nil { return .video(try video(value)) }
        return .custom(try custom(value))
    }

    private func source(_ text: String) throws(Failure) -> Source {
        if Source.scheme(of: text) == DataSource.scheme { return .data(try DataSource(url: text)) }
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), customSources.contains(String(text[..<colon]))
        else { return try Source(text) }
        let reference = String(decoding: text.utf8[colon...].dropFirst(), as: UTF8.self)
        return .custom(try CustomSource(name: String(text[..<colon]), reference: reference, customSourceKey))
    }

    private func video(_ value: JSONElement) throws(JSONError) -> VideoSource {
        var input: Source?
        var seconds = 0.0
        try value.forEachGiven { name, value throws(JSONError) in
            switch name {
            case "video": input = try source(value)
            case "seconds": seconds = try value.double(in: 0...VideoSource.longest)
            default: throw JSONError(.unknown, "is no part of a video's frame: video, seconds")
            }
        }
        guard let input else { throw JSONError(.missing, "is missing", path: "video") }
        return try checked { () throws(Failure) in try VideoSource(input, seconds: seconds) }
    }

    private func custom(_ value: JSONElement) throws(JSONError) -> CustomSource {
        var given: [(name: String, parameters: JSONElement)] = []
        try value.forEachGiven { name, parameters in given.append(("\(name)", parameters)) }
        guard given.count == 1, customSources.contains(given[0].name) else {
            let kinds = ["initials", "base64", "video"] + customSources.sorted()
            throw JSONError(
                .unsupported,
                "no provider for sources of this kind; a URL is served, and objects with "
                    + kinds.joined(separator: ", "))
        }
        let (name, parameters) = given[0]
        let reference: String
        do throws(JSONError) {
            reference = try parameters.ruleParameters()
        } catch {
            throw error.within(name)
        }
        return try checked { () throws(Failure) in
            try CustomSource(name: name, reference: reference, customSourceKey)
        }
    }
}

extension Initials {
    fileprivate init(_ value: JSONElement) throws(JSONError) {
        var text = ""
        var background: CSSColor?
        var foreground: CSSColor?
        try value.forEachGiven { name, value throws(JSONError) in
            switch name {
            case "initials": text = try value.string()
            case "background": background = try value.color()
            case "foreground": foreground = try value.color()
            default: throw JSONError(.unknown, "is no part of initials: initials, background, foreground")
            }
        }
        self = try checked { () throws(Failure) in
            try Initials(text, background: background, foreground: foreground)
        }
    }
}

/// A value of the model that checks itself: its failure as that of a field.
func checked<Value>(_ make: () throws(Failure) -> Value) throws(JSONError) -> Value {
    do {
        return try make()
    } catch {
        throw JSONError(error.code == .unsupportedSource ? .unsupported : .invalid, error.message)
    }
}
