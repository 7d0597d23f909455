import HalcyonModel
import HalcyonSources

/// Who may be told of jobs by HTTP, and how that is signed.
public struct WebhookTargets: Sendable {
    /// Where one goes.
    public struct Endpoint: Sendable {
        /// The address.
        public let url: WebURL
        /// Each makes a signature: two of them while one takes the place of the other.
        public let secrets: [WebhookSecret]
        /// Whether the operator named the address, so that it need not be public.
        public let isTrusted: Bool
    }

    private let named: [String: Endpoint]
    private let allowed: [HostPattern]
    private let secrets: [WebhookSecret]

    /// - Parameters:
    ///   - urls: the operator's own, by their names.
    ///   - secretsByName: of those that are signed with secrets of their own.
    ///   - secrets: of all others.
    ///   - allow: hosts (`hooks.example.org`, `*.example.org`) that jobs may name in URLs.
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

    /// Whether nobody may be told.
    public var isEmpty: Bool { named.isEmpty && allowed.isEmpty }

    /// Where a job's webhook goes.
    /// - Throws: ``Failure`` `invalid_job` for one that may not be told, or not signed.
    public func endpoint(of webhook: Webhook) throws(Failure) -> Endpoint {
        let endpoint: Endpoint
        switch webhook {
        case .name(let name):
            guard let found = named[name] else {
                throw Failure(.invalidJob, "no webhook has the name \(name); webhooks.urls gives names")
            }
            endpoint = found
        case .url(let url):
            guard allowed.contains(where: { $0.matches(url.host) }) else {
                throw Failure(
                    .invalidJob, "jobs may not name the host \(url.host); webhooks.allow says which ones they may")
            }
            endpoint = Endpoint(url: url, secrets: secrets, isTrusted: false)
        }
        guard !endpoint.secrets.isEmpty else {
            throw Failure(.invalidJob, "there is no secret to sign it with; webhooks.secret has it")
        }
        return endpoint
    }
}
