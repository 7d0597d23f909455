import HalcyonModel

/// How images are rendered for whoever waits for them.
public struct RenderOptions: Sendable {
    /// How long a request waits for its image unless it says so, and the longest it may say.
    public var wait = Duration.seconds(20)
    /// What `format=auto` may become for a client that names it in `Accept`, the first that it names; others get what the source is.
    public var formats: [ImageFormat] = [.webp]

    /// The defaults.
    public init() {}
}
