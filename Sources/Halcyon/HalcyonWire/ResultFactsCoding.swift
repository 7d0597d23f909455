import HalcyonModel
import JSON

// The facts of a result as the result tier keeps them, and as a part of events.

extension ResultFacts: JSONWritable {
    /// As one object, the source's facts in it.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writeMembers(to: &writer)
            writer.member("source", source)
        }
    }

    /// The members that are the output's own.
    func writeMembers(to writer: inout JSONWriter) {
        writer.member("width", width)
        writer.member("height", height)
        writer.member("format", format.rawValue)
        writer.member("bytes", bytes)
        writer.member("sha256", sha256)
    }

    /// Reads what ``write(to:)`` wrote.
    /// - Throws: ``JSONError`` for anything else: another version's, or no facts at all.
    public init(json: [UInt8]) throws(JSONError) {
        try self.init(JSON.parse(json, maximumSize: 1 << 20))
    }

    init(_ value: JSONElement) throws(JSONError) {
        guard let source = value.member("source") else { throw JSONError(.missing, "is missing", path: "source") }
        self.init(
            width: try value.integer("width"), height: try value.integer("height"), format: try value.format(),
            bytes: try value.integer("bytes"), sha256: try value.required("sha256").string(),
            source: try SourceFacts(source))
    }
}

extension SourceFacts: JSONWritable {
    /// As one object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("status", status)
            writer.member("etag", etag)
            writer.member("bytes", bytes)
            writer.member("format", format.rawValue)
            writer.member("width", width)
            writer.member("height", height)
        }
    }

    init(_ value: JSONElement) throws(JSONError) {
        self.init(
            status: value.member("status") == nil ? nil : try value.integer("status"),
            etag: try value.member("etag")?.string(), bytes: try value.integer("bytes"), format: try value.format(),
            width: try value.integer("width"), height: try value.integer("height"))
    }
}

extension JSONElement {
    fileprivate func required(_ name: String) throws(JSONError) -> JSONElement {
        guard let member = member(name) else { throw JSONError(.missing, "is missing", path: name) }
        return member
    }

    fileprivate func integer(_ name: String) throws(JSONError) -> Int {
        Int(try required(name).integer(in: 0...Int64.max))
    }

    fileprivate func format() throws(JSONError) -> ImageFormat {
        try required("format").choice(of: ImageFormat.allCases)
    }
}
