/// Frames of a video: one, or several as a contact sheet or an animation.
public struct VideoSource: Hashable, Codable, Sendable {
    /// The latest position of a frame, in seconds: one day.
    public static let longest = 86_400.0
    /// The maximum of the frames times the square of their width.
    public static let mostPixels = 1 << 24

    /// The frames that are used.
    public enum Selection: Hashable, Codable, Sendable {
        /// The frame at a position in seconds from the beginning of the video, rounded to six decimals as in cache
        /// keys.
        case frame(seconds: Double)
        /// Frames from the whole video in rows and columns.
        case contactSheet(ContactSheet)
        /// Frames from the whole video as an animation.
        case preview(Preview)
    }

    /// Frames at equal distances in rows, from the left and from the top.
    public struct ContactSheet: Hashable, Codable, Sendable {
        /// The number of frames in a row, and of rows, 1 to 8 each.
        public var columns, rows: Int
        /// The width of a frame in pixels.
        public var width: Int

        /// Creates a contact sheet.
        public init(columns: Int = 4, rows: Int = 4, width: Int = 320) {
            (self.columns, self.rows, self.width) = (columns, rows, width)
        }
    }

    /// Frames at equal distances that are shown one after the other.
    public struct Preview: Hashable, Codable, Sendable {
        /// The number of frames, 2 to 60.
        public var frames: Int
        /// The duration of the animation in seconds, 0.1 to 60, rounded to six decimals as in cache keys.
        public var duration: Double
        /// The width of a frame in pixels.
        public var width: Int

        /// Creates a preview.
        public init(frames: Int = 10, duration: Double = 3, width: Int = 320) {
            (self.frames, self.duration, self.width) = (frames, CanonicalNumber.rounded(duration), width)
        }
    }

    /// The source of the video; neither initials nor another video frame.
    public let input: Source
    /// The frames that are used.
    public let selection: Selection

    /// Creates the source of a frame.
    /// - Throws: ``JobError`` `invalid_job` if the input cannot be a video or the position is out of range.
    public init(_ input: Source, seconds: Double) throws(JobError) {
        guard (0...Self.longest).contains(seconds) else {
            throw JobError(.invalidJob, "seconds: expected 0 to \(Int(Self.longest)), found \(seconds)")
        }
        try self.init(input, .frame(seconds: CanonicalNumber.rounded(seconds)))
    }

    /// Creates the source of frames, whose numbers are in range.
    /// - Throws: ``JobError`` `invalid_job` if the input cannot be a video, or if the frames have too many pixels.
    public init(_ input: Source, _ selection: Selection) throws(JobError) {
        switch input {
        case .initials, .video:
            throw JobError(.invalidJob, "video: expected the source of a video, found \(input.shownText)")
        case .web, .file, .data, .s3, .custom: break
        }
        let (name, frames, width) =
            switch selection {
            case .frame: ("", 0, 0)
            case .contactSheet(let sheet): ("contactSheet", sheet.columns * sheet.rows, sheet.width)
            case .preview(let preview): ("preview", preview.frames, preview.width)
            }
        guard frames * width * width <= Self.mostPixels else {
            throw JobError(
                .invalidJob,
                "\(name): \(frames) frames of \(width) pixels are too many; at most "
                    + "\(Int(Double(Self.mostPixels / frames).squareRoot())) pixels are allowed")
        }
        self.input = input
        self.selection = selection
    }

    /// The video's text with the frames as a fragment. A position is that of Media Fragments URI 1.0, section 4.2.1:
    /// `https://example.org/a.mp4#t=15`.
    public var text: String {
        let video = input.text
        let end = video.utf8.firstIndex(of: UInt8(ascii: "#")) ?? video.endIndex
        return "\(video[..<end])#\(fragment)"
    }

    private var fragment: String {
        switch selection {
        case .frame(let seconds): "t=\(Self.text(of: seconds))"
        case .contactSheet(let sheet): "contactSheet=\(sheet.columns)x\(sheet.rows)"
        case .preview(let preview): "preview=\(preview.frames)"
        }
    }

    var cacheKey: String {
        switch selection {
        case .frame(let seconds): "\(Self.text(of: seconds)) \(input.cacheKey)"
        case .contactSheet(let sheet): "sheet \(sheet.columns)x\(sheet.rows) \(sheet.width) \(input.cacheKey)"
        case .preview(let preview):
            "preview \(preview.frames) \(Self.text(of: preview.duration)) \(preview.width) \(input.cacheKey)"
        }
    }

    /// Returns a time in seconds, formatted as in cache keys.
    public static func text(of seconds: Double) -> String {
        var text = ""
        text.append(canonical: seconds)
        return text
    }
}

/// The codec and the duration of a video. They are written into the PNG file of a frame, because a source in the cache
/// is a file.
public struct VideoFacts: Sendable, Equatable {
    /// The keyword of the text in a PNG file.
    public static let keyword = "halcyon-video"
    /// The maximum length of the name of a codec.
    public static let longestCodec = 32

    /// The name of the codec, such as `h264`.
    public let codec: String
    /// The duration in milliseconds; nil if the video does not tell it.
    public let milliseconds: Int?

    /// Creates facts. Characters that are unusual in the name of a codec are left out, and a duration above 10^9
    /// seconds counts as unknown.
    public init(codec: String, seconds: Double?) {
        let letters = codec.unicodeScalars.filter {
            $0.isASCII && ($0.properties.isAlphabetic || "0123456789_-.".unicodeScalars.contains($0))
        }
        self.codec = letters.isEmpty ? "unknown" : String(String.UnicodeScalarView(letters.prefix(Self.longestCodec)))
        milliseconds = seconds.flatMap { (0...1e9).contains($0) ? Int(($0 * 1000).rounded()) : nil }
    }

    /// Parses ``text``; nil for another text.
    public init?(text: String) {
        let parts = text.split(separator: " ")
        guard (1...2).contains(parts.count) else { return nil }
        self.init(codec: String(parts[0]), seconds: parts.count > 1 ? Int(parts[1]).map { Double($0) / 1000 } : nil)
        guard self.text == text else { return nil }
    }

    /// The facts as a text: `h264 3000`.
    public var text: String { milliseconds.map { "\(codec) \($0)" } ?? codec }
}
