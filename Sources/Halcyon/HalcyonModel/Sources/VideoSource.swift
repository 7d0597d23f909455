/// One frame of a video.
public struct VideoSource: Hashable, Codable, Sendable {
    /// The latest position of a frame, in seconds: one day.
    public static let longest = 86_400.0

    /// The source of the video; neither initials nor another video frame.
    public let input: Source
    /// The position in seconds from the beginning of the video, rounded to six decimals as in cache keys.
    public let seconds: Double

    /// Creates the source of a frame.
    /// - Throws: ``JobError`` `invalid_job` if the input cannot be a video or the position is out of range.
    public init(_ input: Source, seconds: Double) throws(JobError) {
        switch input {
        case .initials, .video:
            throw JobError(.invalidJob, "video: expected the source of a video, found \(input.shownText)")
        case .web, .file, .data, .s3, .custom: break
        }
        guard (0...Self.longest).contains(seconds) else {
            throw JobError(.invalidJob, "seconds: expected 0 to \(Int(Self.longest)), found \(seconds)")
        }
        self.input = input
        self.seconds = CanonicalNumber.rounded(seconds)
    }

    /// The video's text with the position as a fragment (Media Fragments URI 1.0, section 4.2.1):
    /// `https://example.org/a.mp4#t=15`.
    public var text: String {
        let video = input.text
        let end = video.utf8.firstIndex(of: UInt8(ascii: "#")) ?? video.endIndex
        return "\(video[..<end])#t=\(place)"
    }

    var cacheKey: String { "\(place) \(input.cacheKey)" }

    /// The position in seconds, formatted as in cache keys.
    public var place: String {
        var text = ""
        text.append(canonical: seconds)
        return text
    }
}
