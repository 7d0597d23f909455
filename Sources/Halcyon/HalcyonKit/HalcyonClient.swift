import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A client of a Halcyon cluster, connected to one of its gateways.
///
/// Requests are retried while the gateway is unreachable or overloaded (``Configuration/retryTimeout``). A job keeps
/// its id when it is sent again: if only the response was lost, the job may be done twice, with the same images. Copies
/// of a client share its connections, which are closed with the last copy.
public struct HalcyonClient: Sendable {
    let transport: RetryingTransport
    var configuration: Configuration { transport.configuration }

    /// Creates a client that uses `URLSession`. Nothing is sent yet.
    /// - Parameters:
    ///   - url: The gateway's URL, such as `https://images.example.org`, with or without a path in front of `/v1`.
    ///   - key: One of the gateway's keys, if it has any. It is sent as `Authorization: Bearer`, to this gateway only.
    ///   - configuration: Time-outs and limits.
    ///   - urlSession: The configuration of the sessions, for example with a proxy or a TLS version.
    public init(
        _ url: URL, key: String? = nil, configuration: Configuration = Configuration(),
        urlSession: URLSessionConfiguration = URLSessionTransport.defaultConfiguration
    ) {
        let transport = URLSessionTransport(
            configuration: urlSession, maximumConcurrentWaits: configuration.maximumConcurrentWaits)
        self.init(url, key: key, configuration: configuration, transport: transport)
    }

    /// Creates a client that sends its requests by another transport, such as a fake one in tests.
    public init(
        _ url: URL, key: String? = nil, configuration: Configuration = Configuration(), transport: any Transport
    ) {
        self.transport = RetryingTransport(transport, to: url, key: key, configuration: configuration)
    }

    /// Time-outs and limits of a client.
    public struct Configuration: Sendable {
        /// The time for which a request is retried while the gateway is unreachable, is shutting down or responds with
        /// 429. With `.zero` the first response counts. Event streams reconnect for as long as they
        /// are read. Default: 30 s.
        public var retryTimeout = Duration.seconds(30)
        /// The longest pause between retries, plus a random part of up to a half, unless the gateway asks for a longer
        /// one. Default: 30 s.
        public var maximumBackoff = Duration.seconds(30)
        /// The time for which the end of a job is awaited. The job is cancelled after that. Default: 5 min.
        public var jobTimeout = Duration.seconds(300)
        /// The time for which one request waits for the end of a job before the next one is sent. The gateway may
        /// respond earlier. Default: 25 s.
        public var longPollInterval = Duration.seconds(25)
        /// The time without a byte after which a connection counts as lost. It must be longer than the gateway's
        /// `gateway.keepAliveInterval`. Default: 60 s.
        public var readTimeout = Duration.seconds(60)
        /// The number of jobs whose end is awaited at the same time; more take turns. An injected transport has limits
        /// of its own. Default: 64.
        public var maximumConcurrentWaits = 64
        /// The maximum size of an image, in bytes. Default: 64 MiB.
        public var maximumImageBytes = 64 << 20
        /// The maximum size of the query by which an image is rendered with one request, in bytes. Gateways accept a
        /// request line and header fields of 16 KiB together. Default: 8 KiB.
        public var maximumQueryBytes = 8 << 10
        /// The maximum size of an event in a stream, in bytes. About as much may be buffered. Default: 4 MiB.
        public var maximumEventBytes = 4 << 20
        /// The maximum size of any other response, in bytes. Default: 16 MiB.
        public var maximumResponseBytes = 16 << 20

        /// Creates a configuration with the defaults.
        public init() {}
    }
}
