import HalcyonModel
import JSON

// The JSON encoding of result metadata in the result tier and in events.

extension ResultMetadata: JSONWritable {
    /// Writes an object that contains the source's metadata.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writeMembers(to: &writer)
            writer.member("source", source)
            if isPrivate { writer.member("private", true) }
        }
    }

    /// Writes the members that describe the output.
    func writeMembers(to writer: inout JSONWriter) {
        writer.member("width", width)
        writer.member("height", height)
        writer.member("format", format.rawValue)
        writer.member("bytes", bytes)
        writer.member("sha256", sha256)
        writer.member("frames", frames)
        writer.member("blurhash", blurhash)
        writer.member("dominantColor", dominantColor)
        writer.member("trim", trim)
        writer.member("palette", palette)
        writer.member("thumbhash", thumbhash)
        writer.member("phash", phash)
        writer.member("faces", faces)
        if let info {
            writer.name("info")
            writer.raw(info)
        }
        writer.member("encoding", encoding)
    }

    /// Decodes the format of ``write(to:)``.
    /// - Throws: ``JSONError`` if the JSON is malformed or was written by an incompatible version.
    public init(json: [UInt8]) throws(JSONError) {
        try self.init(JSON.parse(json, maximumSize: 1 << 20))
    }

    init(_ value: JSONElement) throws(JSONError) {
        self.init(
            width: try value.required("width", wholeNumber), height: try value.required("height", wholeNumber),
            format: try value.required("format", imageFormat), bytes: try value.required("bytes", wholeNumber),
            sha256: try value.required("sha256", text), frames: try value.optional("frames", wholeNumber),
            blurhash: try value.optional("blurhash", text), dominantColor: try value.optional("dominantColor", text),
            trim: try value.optional("trim", PixelRect.init),
            palette: try value.optional("palette", texts), thumbhash: try value.optional("thumbhash", text),
            phash: try value.optional("phash", text), faces: try value.optional("faces", DetectedFace.list),
            info: value.member("info")?.bytes,
            encoding: try value.optional("encoding", EncodingChoice.init),
            source: try value.required("source", SourceMetadata.init),
            isPrivate: try value.optional("private", flag) ?? false)
    }
}

extension PixelRect: JSONWritable {
    /// Writes an object of x, y, width and height.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("x", x)
            writer.member("y", y)
            writer.member("width", width)
            writer.member("height", height)
        }
    }

    init(_ value: JSONElement) throws(JSONError) {
        self.init(
            x: try value.required("x", wholeNumber), y: try value.required("y", wholeNumber),
            width: try value.required("width", wholeNumber), height: try value.required("height", wholeNumber))
    }
}

extension DetectedFace: JSONWritable {
    /// Writes an object of x, y, width, height and confidence.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("x", place.x)
            writer.member("y", place.y)
            writer.member("width", place.width)
            writer.member("height", place.height)
            writer.member("confidence", confidence)
        }
    }

    static func list(_ value: JSONElement) throws(JSONError) -> [DetectedFace] {
        var faces: [DetectedFace] = []
        try value.forEachElement { face throws(JSONError) in
            faces.append(
                DetectedFace(try PixelRect(face), confidence: try face.required("confidence", number)))
        }
        return faces
    }
}

extension EncodingChoice: JSONWritable {
    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("quality", quality)
            writer.member("colors", colors)
            writer.member("similarity", similarity)
            writer.member("encodings", encodings)
        }
    }

    init(_ value: JSONElement) throws(JSONError) {
        self.init(
            quality: try value.optional("quality", wholeNumber), colors: try value.optional("colors", wholeNumber),
            similarity: try value.optional("similarity", number),
            encodings: try value.required("encodings", wholeNumber))
    }
}

extension SourceMetadata: JSONWritable {
    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("status", status)
            writer.member("etag", etag)
            writer.member("bytes", bytes)
            writer.member("format", format.rawValue)
            writer.member("width", width)
            writer.member("height", height)
            if isTruncated { writer.member("truncated", true) }
        }
    }

    init(_ value: JSONElement) throws(JSONError) {
        self.init(
            status: try value.optional("status", wholeNumber), etag: try value.optional("etag", text),
            bytes: try value.required("bytes", wholeNumber), format: try value.required("format", imageFormat),
            width: try value.required("width", wholeNumber), height: try value.required("height", wholeNumber),
            isTruncated: try value.optional("truncated", flag) ?? false)
    }
}

private func flag(_ value: JSONElement) throws(JSONError) -> Bool { try value.bool() }
private func wholeNumber(_ value: JSONElement) throws(JSONError) -> Int { Int(try value.integer(in: 0...Int64.max)) }
private func number(_ value: JSONElement) throws(JSONError) -> Double { try value.double() }
private func text(_ value: JSONElement) throws(JSONError) -> String { try value.string() }
private func texts(_ value: JSONElement) throws(JSONError) -> [String] {
    var texts: [String] = []
    try value.forEachElement { text throws(JSONError) in texts.append(try text.string()) }
    return texts
}
private func imageFormat(_ value: JSONElement) throws(JSONError) -> ImageFormat {
    try value.choice(of: ImageFormat.allCases)
}

extension JSONElement {
    fileprivate func required<Value>(
        _ name: String, _ read: (JSONElement) throws(JSONError) -> Value
    ) throws(JSONError) -> Value {
        guard let value = try optional(name, read) else { throw JSONError(.missing, "is missing", path: name) }
        return value
    }

    fileprivate func optional<Value>(
        _ name: String, _ read: (JSONElement) throws(JSONError) -> Value
    ) throws(JSONError) -> Value? {
        guard let member = member(name) else { return nil }
        do throws(JSONError) {
            return try read(member)
        } catch {
            throw error.within(name)
        }
    }
}
