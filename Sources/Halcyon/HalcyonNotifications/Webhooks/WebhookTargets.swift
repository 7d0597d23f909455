import Concurrency
import HalcyonModel
import HalcyonSources

/// The allowed webhook targets and their secrets.
public struct WebhookTargets: Sendable {
    /// The endpoint of a webhook.
    public struct Endpoint: Sendable {
        /// The URL.
        public let url: WebURL
        /// The signing secrets. Each produces a signature. There are two while a secret is being replaced.
        public let secrets: [WebhookSecret]
        /// True if the operator configured the URL. The address then need not be public.
        public let isTrusted: Bool
    }

    private let named: [String: Endpoint]
    private let allowed: [HostPattern]
    private let secrets: [WebhookSecret]

    /// - Parameters:
    ///   - urls: The configured URLs by name.
    ///   - secretsByName: The secrets of named webhooks that have separate ones.
    ///   - secrets: The secrets of all other webhooks.
    ///   - allow: The hosts (`hooks.example.org`, `*.example.org`) that jobs may name in URLs.
    public init(
        urls: [String: WebURL] = [:], secretsByName: [String: [WebhookSecret]] = [:], secrets: [WebhookSecret] = [],
        allow: [HostPattern] = []
    ) {
        named = Dictionary(
            uniqueKeysWithValues: urls.map { name, url in
                (name, Endpoint(url: url, secrets: secretsByName[name] ?? secrets, isTrusted: true))
            })
        allowed = allow
        self.secrets = secrets
    }

    /// The names of the configured URLs, sorted.
    var names: [String] { named.keys.sorted() }

    /// True if no target is allowed.
    public var isEmpty: Bool { named.isEmpty && allowed.isEmpty }

    /// Returns the endpoint of a job's webhook.
    /// - Throws: ``JobError`` `invalid_job` if the target is not allowed or has no secret.
    public func endpoint(of webhook: Webhook) throws(JobError) -> Endpoint {
        let endpoint: Endpoint
        switch webhook {
        case .name(let name):
            guard let found = named[name] else {
                throw JobError(.invalidJob, "no webhook has the name \(name); names are defined in webhooks.urls")
            }
            endpoint = found
        case .url(let url):
            guard allowed.contains(where: { $0.matches(url.host) }) else {
                throw JobError(
                    .invalidJob, "jobs may not name the host \(url.host); allowed hosts are listed in webhooks.allow")
            }
            endpoint = Endpoint(url: url, secrets: secrets, isTrusted: false)
        }
        guard !endpoint.secrets.isEmpty else {
            throw JobError(.invalidJob, "the webhook has no signing secret; set webhooks.secret")
        }
        return endpoint
    }
}
