import HTTPFields
import HalcyonModel
import JSON

// How entries are described where they are kept: one JSON object beside the bytes. An object that another version wrote and
// this one cannot read is no entry.

extension SourceEntry: JSONWritable {
    /// Writes all but the body.
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("version", Self.version)
            writer.member("status", response.status)
            writer.member("headers", response.headers.fields.flatMap { [$0.name, $0.value] })
            writer.member("varied", response.varied.fields.flatMap { [$0.name, $0.value] })
            writer.member("initialAge", response.initialAge)
            if let failure {
                writer.member("code", failure.code.rawValue)
                writer.member("message", failure.message)
                writer.member("retryable", failure.isRetryable)
                writer.member("retryAfter", failure.retryAfter)
            }
        }
    }

    private static var version: Int { 1 }

    /// All but the body.
    var description: [UInt8] {
        var writer = JSONWriter(capacity: 512)
        writer.value(self)
        return writer.bytes
    }

    /// Reads what ``description`` said; nil for what is not understood.
    init?(description: [UInt8], body: [UInt8]) {
        do throws(JSONError) {
            let object = try JSON.parse(description, maximumSize: 1 << 20)
            guard try object.needed("version").integer(in: 1...1) == 1 else { return nil }
            response = StoredResponse(
                status: Int(try object.needed("status").integer(in: 0...999)),
                headers: try object.needed("headers").fields(), varied: try object.needed("varied").fields(),
                initialAge: try object.needed("initialAge").double())
            if let code = object.member("code") {
                guard let code = FailureCode(rawValue: try code.string()) else { return nil }
                var found = Failure(
                    code, try object.needed("message").string(), isRetryable: try object.needed("retryable").bool())
                found.retryAfter = try object.member("retryAfter")?.double()
                failure = found
            }
            self.body = body
        } catch {
            return nil
        }
    }
}

extension JSONElement {
    fileprivate func needed(_ name: String) throws(JSONError) -> JSONElement {
        guard let member = member(name) else { throw JSONError(.missing, "is missing", path: name) }
        return member
    }

    /// Names and values in turn.
    fileprivate func fields() throws(JSONError) -> HTTPFields {
        var texts: [String] = []
        try forEachElement { element throws(JSONError) in texts.append(try element.string()) }
        return HTTPFields(
            stride(from: 0, to: texts.count - 1, by: 2).map { HTTPFields.Field(texts[$0], texts[$0 + 1]) })
    }
}
