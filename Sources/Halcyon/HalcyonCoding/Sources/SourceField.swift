import Formats
import HalcyonModel
import Hashing
import JSON

extension JobDecoder {
    /// Decodes a source: a string, or an object for the kinds that have parameters.
    /// - Throws: ``JSONError``, with the code `unsupported` for unknown kinds and schemes.
    func source(_ value: JSONElement) throws(JSONError) -> Source {
        guard value.kind == .object else {
            let text = try value.string()
            return try checked { () throws(JobError) in try source(text) }
        }
        if value.member("initials")?.given != nil { return .initials(try Initials(value)) }
        if value.member("base64")?.given != nil { return .data(try DataSource(value)) }
        if value.member("url")?.given != nil { return .web(try named(value)) }
        if value.member("video")?.given != nil { return .video(try video(value)) }
        return .custom(try custom(value))
    }

    /// Parses a source that is a string.
    /// - Throws: ``JobError`` `unsupported_source` or `invalid_job`.
    public func source(_ text: String) throws(JobError) -> Source {
        if Source.scheme(of: text) == DataSource.scheme { return .data(try DataSource(url: text)) }
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), customSources.contains(String(text[..<colon]))
        else {
            let source = try Source(text)
            guard case .web(let url) = source else { return source }
            return .web(url.identified(by: identityRules))
        }
        let reference = String(decoding: text.utf8[colon...].dropFirst(), as: UTF8.self)
        return .custom(try CustomSource(name: String(text[..<colon]), reference: reference, customSourceKey))
    }

    /// Decodes a URL with a name in cache keys.
    private func named(_ value: JSONElement) throws(JSONError) -> WebURL {
        var (text, name): (String, String?) = ("", nil)
        try value.forEachGiven { member, value throws(JSONError) in
            switch member {
            case "url": text = try value.string()
            case "cacheKey": name = try value.string()
            default: throw JSONError(.unknown, "unknown member of a URL source; expected url or cacheKey")
            }
        }
        return try checked { () throws(JobError) in
            let url = try WebURL(text)
            return try name.map { name throws(JobError) in try url.named(name) } ?? url.identified(by: identityRules)
        }
    }

    private func video(_ value: JSONElement) throws(JSONError) -> VideoSource {
        var input: Source?
        var selections: [VideoSource.Selection] = []
        try value.forEachGiven { name, value throws(JSONError) in
            switch name {
            case "video": input = try source(value)
            case "seconds":
                let seconds = try value.double(in: 0...VideoSource.longest)
                selections.append(.frame(seconds: CanonicalNumber.rounded(seconds)))
            case "contactSheet": selections.append(.contactSheet(try VideoSource.ContactSheet(value)))
            case "preview": selections.append(.preview(try VideoSource.Preview(value)))
            default:
                throw JSONError(
                    .unknown, "unknown member of a video source; expected video, seconds, contactSheet or preview")
            }
        }
        guard let input else { throw JSONError(.missing, "is missing", path: "video") }
        guard selections.count <= 1 else {
            throw JSONError(.invalid, "seconds, contactSheet and preview of a video cannot be combined")
        }
        let selection = selections.first ?? .frame(seconds: 0)
        return try checked { () throws(JobError) in try VideoSource(input, selection) }
    }

    private func custom(_ value: JSONElement) throws(JSONError) -> CustomSource {
        var given: [(name: String, parameters: JSONElement)] = []
        try value.forEachGiven { name, parameters in given.append(("\(name)", parameters)) }
        guard given.count == 1, customSources.contains(given[0].name) else {
            let kinds = ["url", "initials", "base64", "video"] + customSources.sorted()
            throw JSONError(
                .unsupported,
                "no provider for sources of this kind; expected a URL, or an object with one of "
                    + kinds.joined(separator: ", "))
        }
        let (name, parameters) = given[0]
        let reference: String
        do throws(JSONError) {
            reference = try parameters.ruleParameters()
        } catch {
            throw error.within(name)
        }
        return try checked { () throws(JobError) in
            try CustomSource(name: name, reference: reference, customSourceKey)
        }
    }
}

extension VideoSource.ContactSheet {
    fileprivate init(_ value: JSONElement) throws(JSONError) {
        self.init()
        try value.forEachGiven { name, value throws(JSONError) in
            switch name {
            case "columns": columns = Int(try value.integer(in: 1...8))
            case "rows": rows = Int(try value.integer(in: 1...8))
            case "width": width = Int(try value.integer(in: 16...1024))
            default: throw JSONError(.unknown, "unknown member; expected columns, rows or width")
            }
        }
    }
}

extension VideoSource.Preview {
    fileprivate init(_ value: JSONElement) throws(JSONError) {
        self.init()
        try value.forEachGiven { name, value throws(JSONError) in
            switch name {
            case "frames": frames = Int(try value.integer(in: 2...60))
            case "duration": duration = CanonicalNumber.rounded(try value.double(in: 0.1...60))
            case "width": width = Int(try value.integer(in: 16...1024))
            default: throw JSONError(.unknown, "unknown member; expected frames, duration or width")
            }
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
            default:
                throw JSONError(
                    .unknown, "unknown member of an initials source; expected initials, background or foreground")
            }
        }
        self = try checked { () throws(JobError) in
            try Initials(text, background: background, foreground: foreground)
        }
    }
}

/// Creates a model value and converts its ``JobError`` to a ``JSONError``.
func checked<Value>(_ make: () throws(JobError) -> Value) throws(JSONError) -> Value {
    do {
        return try make()
    } catch {
        throw JSONError(error.code == .unsupportedSource ? .unsupported : .invalid, error.message)
    }
}

extension DataSource {
    /// Decodes the bytes of a `data:` URL (RFC 2397). The media type is ignored, because the format is detected from
    /// the bytes.
    ///
    /// Spaces and line breaks must be percent-encoded or omitted. Base64 padding is optional.
    /// - Throws: ``JobError`` `invalid_job` if the URL is malformed or contains no data.
    init(url text: String) throws(JobError) {
        let bytes = Array(text.utf8)
        guard bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
            throw JobError(.invalidJob, "a data: URL must not contain spaces, line breaks or control characters")
        }
        guard let comma = bytes.firstIndex(of: UInt8(ascii: ",")) else {
            throw JobError(.invalidJob, "expected data:[type][;base64],… with a comma before the data")
        }
        guard let data = PercentEncoding.decode(bytes[comma...].dropFirst()) else {
            throw JobError(.invalidJob, "invalid escape in a data: URL; write % as %25")
        }
        let isBase64 = String(decoding: bytes[..<comma], as: UTF8.self).lowercased().hasSuffix(";base64")
        try self.init(isBase64 ? Self.bytes(base64: data) : data, sha256: Self.sha256)
    }

    /// Decodes `{"base64": "…"}`, optionally with the `cacheKey` that identifies the bytes.
    init(_ value: JSONElement) throws(JSONError) {
        var text = ""
        var name: String?
        try value.forEachGiven { member, value throws(JSONError) in
            switch member {
            case "base64": text = try value.string()
            case "cacheKey": name = try value.string()
            default: throw JSONError(.unknown, "unknown member of a base64 source; expected base64 or cacheKey")
            }
        }
        self = try checked { () throws(JobError) in
            let bytes = try Self.bytes(base64: Array(text.utf8))
            if let name { return try DataSource(bytes, name: name) }
            return try DataSource(bytes, sha256: Self.sha256)
        }
    }

    private static func bytes(base64 text: [UInt8]) throws(JobError) -> [UInt8] {
        let padding = text.count % 4 == 0 ? 0 : 4 - text.count % 4
        let padded = String(decoding: text, as: UTF8.self) + String(repeating: "=", count: padding)
        guard let bytes = Base64.decode(padded) else {
            throw JobError(.invalidJob, "malformed base64 (RFC 4648, section 4)")
        }
        return bytes
    }

    private static func sha256(_ bytes: [UInt8]) -> String { SHA256.hash(bytes).description }
}

extension Source: JSONWritable {
    /// Writes the source as in a job. Decoding it results in an equal source.
    public func write(to writer: inout JSONWriter) {
        switch self {
        case .web(let url):
            guard let name = url.cacheKeyName else { return writer.value(text) }
            writer.object { writer in
                writer.member("url", text)
                writer.member("cacheKey", name)
            }
        case .file, .s3, .custom: writer.value(text)
        case .initials(let initials):
            writer.object { writer in
                writer.member("initials", initials.text)
                writer.member("background", initials.background.hexadecimal)
                writer.member("foreground", initials.foreground.hexadecimal)
            }
        case .data(let data):
            writer.object { writer in
                writer.member("base64", Base64.encode(data.bytes))
                writer.member("cacheKey", data.name)
            }
        case .video(let video):
            writer.object { writer in
                writer.member("video", video.input)
                switch video.selection {
                case .frame(let seconds): writer.member("seconds", seconds)
                case .contactSheet(let sheet):
                    writer.name("contactSheet")
                    writer.object { writer in
                        writer.member("columns", sheet.columns)
                        writer.member("rows", sheet.rows)
                        writer.member("width", sheet.width)
                    }
                case .preview(let preview):
                    writer.name("preview")
                    writer.object { writer in
                        writer.member("frames", preview.frames)
                        writer.member("duration", preview.duration)
                        writer.member("width", preview.width)
                    }
                }
            }
        }
    }
}
