import CivilTime
import Curl
import HalcyonModel
import HalcyonSources
import HalcyonWire

/// Tells a webhook of an event: one signed request, as the Standard Webhooks specification (1.0.0) has it.
struct WebhookPost: Sendable {
    let client: GuardedClient
    let timeout: Duration
    let maximumResponseBytes: Int

    /// - Returns: why the webhook was not told; nil when it was.
    /// - Throws: `CancellationError` when nobody can know.
    func send(_ notice: WebhookNotice, to endpoint: WebhookTargets.Endpoint) async throws -> Failure? {
        let host = endpoint.url.host
        guard !client.policy.denies(host: host) else {
            return Failure(.blockedAddress, "the host \(host) is on the list sources.deny")
        }
        do throws(CurlError) {
            let response = try await client.perform(
                request(notice, endpoint), to: host, isTrusted: endpoint.isTrusted)
            return Failure(
                webhookAnswered: response.status, retryAfter: response.headers.first("Retry-After"),
                date: response.headers.first("Date"))
        } catch {
            // A client that is closed belongs to a worker that is leaving.
            if error.code == .cancelled || error.code == .closed { throw CancellationError() }
            return Failure(webhook: error)
        }
    }

    private func request(_ notice: WebhookNotice, _ endpoint: WebhookTargets.Endpoint) -> HTTPRequest {
        let timestamp = Int64(Timestamp.now.seconds)
        let signatures = endpoint.secrets.map {
            $0.signature(id: notice.id, timestamp: timestamp, body: notice.body)
        }
        var request = HTTPRequest(
            .post, endpoint.url.text,
            headers: [
                "Content-Type": Event.mediaType, "webhook-id": notice.id, "webhook-timestamp": "\(timestamp)",
                "webhook-signature": signatures.joined(separator: " "),
            ], body: notice.body)
        request.connectTimeout = timeout
        request.timeout = timeout
        request.stall = nil
        request.maxBytes = maximumResponseBytes
        request.maxRedirects = 0
        request.acceptsCompression = false
        return request
    }
}
