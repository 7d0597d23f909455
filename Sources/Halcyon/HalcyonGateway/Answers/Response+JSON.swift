import HTTPServer
import JSON

extension HTTPServer.Response {
    /// JSON that is true now and perhaps not later.
    init(status: Int, json: [UInt8], headers: HTTPServer.Headers = HTTPServer.Headers()) {
        self.init(
            status: status, headers: ["Content-Type": "application/json", "Cache-Control": "no-store"],
            body: .bytes(json))
        for field in headers.fields { self.headers.add(field.name, field.value) }
    }
}
