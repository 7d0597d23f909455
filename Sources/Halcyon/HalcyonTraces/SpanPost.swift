import CivilTime
import Curl
import HTTPFields
import HalcyonModel
import Telemetry

/// Posts the body of an export, and reads what the collector says to it.
struct SpanPost: Sendable {
    let client: CurlClient
    let options: TraceOptions

    /// No redirect is followed: OTLP knows none, and the headers may hold a key.
    @Sendable func send(_ body: [UInt8]) async -> ExportReply {
        var headers = options.headers
        headers["Content-Type"] = "application/json"
        var request = HTTPRequest(.post, options.endpoint, headers: headers, body: body)
        request.timeout = options.timeout
        request.connectTimeout = options.timeout
        request.stall = nil
        request.maxBytes = 1 << 20
        request.maxRedirects = 0
        do throws(CurlError) {
            let response = try await client.perform(request)
            let retryAfter = response.headers.first("Retry-After").flatMap {
                RetryAfter.seconds(of: $0, date: response.headers.first("Date"), now: Timestamp.now.seconds)
            }
            return ExportReply(status: response.status, retryAfter: retryAfter, body: response.body)
        } catch {
            // Whether they came is not known when there is no answer: a span that comes twice has the same name, and counts once.
            switch error.code {
            case .badURL, .badRequest, .unsupportedScheme, .tooLarge: return .refused("\(error)")
            default: return .unavailable("\(error)", retryAfter: nil)
            }
        }
    }
}
