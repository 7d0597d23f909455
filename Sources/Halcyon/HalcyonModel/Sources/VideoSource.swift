/// One frame of a video.
public struct VideoSource: Hashable, Codable, Sendable {
    /// Seconds of the latest frame taken: a day.
    public static let longest = 86_400.0

    /// Where the video comes from: no avatar, and no frame.
    public let input: Source
    /// Seconds from the video's beginning, to the six decimals that keys know.
    public let seconds: Double

    /// - Throws: ``Failure`` `invalid_job` for an input that is no video, or a time that no video has.
    public init(_ input: Source, seconds: Double) throws(Failure) {
        switch input {
        case .initials, .video: throw Failure(.invalidJob, "video: expected where a video is, found \(input.shownText)")
        case .web, .file, .data, .s3, .custom: break
        }
        guard (0...Self.longest).contains(seconds) else {
            throw Failure(.invalidJob, "seconds: expected 0 to \(Int(Self.longest)), found \(seconds)")
        }
        self.input = input
        self.seconds = CanonicalNumber.rounded(seconds)
    }

    /// The video's, with the place as a fragment (Media Fragments URI 1.0, section 4.2.1): `https://example.org/a.mp4#t=15`.
    public var text: String {
        let video = input.text
        let end = video.utf8.firstIndex(of: UInt8(ascii: "#")) ?? video.endIndex
        return "\(video[..<end])#t=\(place)"
    }

    var cacheKey: String { "\(place) \(input.cacheKey)" }

    /// The seconds as keys write them.
    public var place: String {
        var text = ""
        text.append(canonical: seconds)
        return text
    }
}
