import HalcyonModel

/// Who serves a source: scheme, host and port (RFC 6454). Loads of one origin are counted together, by all workers.
public struct Origin: Hashable, Sendable, CustomStringConvertible {
    /// `https://img.example.org:8443`; without the port where it is the scheme's own.
    public let description: String

    /// Of that name.
    public init(_ name: String) { description = name }

    /// Of a URL.
    public init(_ url: WebURL) {
        // The third slash begins the path, which a canonical URL always has.
        let parts = url.canonical.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        let authority = parts[2].split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        description = "\(parts[0])//\(authority)"
    }
}
