import HalcyonModel

/// Who serves a source: scheme, host and port (RFC 6454). Loads of one origin are counted together, by all workers.
public struct Origin: Hashable, Sendable, CustomStringConvertible {
    /// `https://img.example.org:8443`; without the port where it is the scheme's own.
    public let description: String

    /// Of that name.
    public init(_ name: String) { description = name }

    /// Of a URL.
    public init(_ url: WebURL) { description = String(url.canonical.prefix { $0 != "/" }) }
}
