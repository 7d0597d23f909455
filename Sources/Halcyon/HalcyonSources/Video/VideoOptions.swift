/// What a frame of a video may cost.
public struct VideoOptions: Sendable {
    /// The program that reads videos: a path, or a name looked up in PATH.
    public static let program = "ffmpeg"

    /// For finding and decoding one frame.
    public var time = Duration.seconds(20)
    /// Bytes of memory of one ffmpeg.
    public var memory = 512 << 20
    /// Bytes of the largest video. It is in memory while it is loaded.
    public var maximumBytes = 64 << 20

    /// The defaults.
    public init() {}
}
