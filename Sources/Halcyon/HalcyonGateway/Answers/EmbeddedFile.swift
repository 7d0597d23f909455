import Digests
import HTTPServer

/// A file that is a part of the program. Browsers keep it and ask each time whether it is still this one: another release has another one.
struct EmbeddedFile: Sendable {
    private let type: String
    private let bytes: [UInt8]
    private let tag: EntityTag
    private let validity: HTTPServer.Headers

    /// - Parameters:
    ///   - type: the media type.
    ///   - headers: that its answers have besides, and those which say that it is still the same.
    init(_ type: String, _ bytes: [UInt8], headers: HTTPServer.Headers = HTTPServer.Headers()) {
        self.type = type
        self.bytes = bytes
        tag = EntityTag(value: SHA256.hash(bytes).description)
        var validity: HTTPServer.Headers = ["ETag": tag.description, "Cache-Control": "no-cache"]
        for field in headers.fields { validity.add(field.name, field.value) }
        self.validity = validity
    }

    func answer(_ call: Call) -> HTTPServer.Response {
        if tag.isNamed(by: call.request.headers["If-None-Match"]) {
            return HTTPServer.Response(status: 304, headers: validity)
        }
        var headers = validity
        headers.add("Content-Type", type)
        return HTTPServer.Response(status: 200, headers: headers, body: .bytes(bytes))
    }
}
