import Formats
import HalcyonModel
import JSON

extension AttemptHistory.Attempt: JSONWritable {
    /// Writes `{"time": …, "code": …, "message": …}`.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("time", Timestamp(milliseconds: moment).rfc3339)
            writer.member("code", code.rawValue)
            writer.member("message", message)
        }
    }

    fileprivate init(_ element: JSONElement) throws(JSONError) {
        func text(_ name: String) throws(JSONError) -> String {
            guard let member = element.member(name) else { throw JSONError(.missing, "is missing", path: name) }
            return try member.string()
        }
        guard let time = Timestamp(rfc3339: try text("time")) else {
            throw JSONError(.invalid, "is not an RFC 3339 date and time", path: "time")
        }
        guard let code = JobErrorCode(rawValue: try text("code")) else {
            throw JSONError(.invalid, "is not a known error code", path: "code")
        }
        self.init(moment: time.milliseconds, code: code, message: try text("message"))
    }
}

extension [AttemptHistory.Attempt] {
    /// The attempts as a JSON array, oldest first.
    public var json: [UInt8] {
        var writer = JSONWriter(capacity: 256)
        writer.array { writer in for attempt in self { attempt.write(to: &writer) } }
        return writer.bytes
    }

    /// Decodes a JSON array of attempts.
    /// - Throws: `JSONError` if the array is malformed.
    public init(json: [UInt8]) throws(JSONError) {
        self = []
        let list = try JSON.parse(json, maximumSize: 1 << 16)
        try list.forEachElement { element throws(JSONError) in append(try AttemptHistory.Attempt(element)) }
    }
}
