import Testing

@testable import Telemetry

/// Parsing of responses from collectors.
@Suite struct ExportResponseTests {
    @Test(arguments: [429, 502, 503, 504]) func treatsTransientStatusesAsUnavailable(status: Int) {
        #expect(
            ExportResponse(status: status, retryAfter: 7, body: []) == .unavailable("status \(status)", retryAfter: 7))
    }

    @Test(arguments: [301, 400, 401, 404, 413, 500, 501]) func treatsOtherErrorStatusesAsRefused(status: Int) {
        #expect(ExportResponse(status: status, retryAfter: 7, body: []) == .refused("status \(status)"))
    }

    @Test(arguments: [
        ("", 0, ""), ("{}", 0, ""), ("<html>", 0, ""), (#"{"partialSuccess":{}}"#, 0, ""),
        (#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#, 3, "too old"),
        (#"{"partialSuccess":{"rejectedSpans":2}}"#, 2, ""),
        (#"{"partialSuccess":{"rejectedSpans":"-2"}}"#, 0, ""),
        (#"{"partialSuccess":{"errorMessage":"soon gone"}}"#, 0, "soon gone"),
        (#"{"partialSuccess":null}"#, 0, ""), (#"[{"partialSuccess":{"rejectedSpans":"3"}}]"#, 0, ""),
    ])
    func readsPartialSuccess(body: String, rejected: Int, reason: String) {
        #expect(
            ExportResponse(status: 200, retryAfter: nil, body: Array(body.utf8))
                == .taken(rejected: rejected, reason: reason))
    }
}
