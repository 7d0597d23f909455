import HalcyonImaging
import HalcyonModel

/// An untrusted file, and the outcome that rendering it must have.
public struct MalformedImage: Sendable, CustomStringConvertible {
    /// The expected outcome of a rendering.
    public indirect enum End: Sendable, Hashable {
        /// An image is produced.
        case renders
        /// The file is rejected with one of these codes.
        case fails([JobErrorCode])
        /// Both are correct. Decoders differ in what they tolerate, and the format does not decide.
        case rendersOrFails([JobErrorCode])
        /// Each of ``MalformedImage/jobs`` has its own outcome.
        case each([End])
    }

    /// The format, followed by the defect.
    public let name: String
    private let make: @Sendable () -> [UInt8]
    /// The outcome that every rendering must have.
    public let end: End
    /// The time limit of one rendering.
    public private(set) var time = Duration.seconds(600)
    /// True if the header does not reveal the cost, so that only the memory limit of a child process stops the
    /// rendering.
    public private(set) var isBoundByChild = false

    /// The name, for test output.
    public var description: String { name }

    init(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8], _ end: End) {
        self.name = name
        make = bytes
        self.end = end
    }

    /// Creates the file.
    public func bytes() -> [UInt8] { make() }

    static func corrupt(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> MalformedImage {
        MalformedImage(name, bytes(), .fails([.corruptImage]))
    }

    static func tooManyPixels(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> MalformedImage
    {
        MalformedImage(name, bytes(), .fails([.tooManyPixels]))
    }

    static func unsupported(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> MalformedImage {
        MalformedImage(name, bytes(), .fails([.unsupportedFormat]))
    }

    /// A file that is rejected. The code depends on whether the decoder fails on the header or believes it.
    static func fails(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> MalformedImage {
        MalformedImage(name, bytes(), .fails([.corruptImage, .tooManyPixels, .unsupportedFormat]))
    }

    /// A file that some decoders tolerate.
    static func rendersOrFails(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8])
        -> MalformedImage
    {
        MalformedImage(name, bytes(), .rendersOrFails([.corruptImage, .tooManyPixels]))
    }

    static func renders(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> MalformedImage {
        MalformedImage(name, bytes(), .renders)
    }
}

extension MalformedImage {
    /// A file that would take hours to render, and ends as a timeout after 2 seconds.
    static func timingOut(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> MalformedImage {
        var file = MalformedImage(name, bytes(), .fails([.timeout]))
        file.time = .seconds(2)
        return file
    }

    /// A file that takes long if the library has no limit or a high one.
    static func slow(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> MalformedImage {
        var file = MalformedImage(name, bytes(), .rendersOrFails([.corruptImage, .timeout]))
        file.time = .seconds(2)
        return file
    }

    /// An animation of more frames than allowed. The first one can be rendered as a still image.
    static func tooManyFrames(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> MalformedImage
    {
        MalformedImage(name, bytes(), .each([.renders, .renders, .renders, .fails([.tooManyPixels])]))
    }

    /// The file, stopped only by the memory limit of a child process.
    func boundByChild() -> MalformedImage {
        var file = self
        file.isBoundByChild = true
        return file
    }
}

extension MalformedImage {
    /// The jobs that each file is rendered by: shrunk on load where possible; at full size; with excess, encoded as
    /// AVIF, which is slow, and as PNG from the same pixels; and cropped, with all frames.
    public static let jobs = [
        #""width": 100, "height": 100, "format": "jpeg""#,
        #""sizer": "natural", "format": "png""#,
        #""width": 90, "height": 60, "contentMode": "contain", "variants": [{"format": "avif"}, {"format": "png"}]"#,
        #""width": 9, "height": 9, "cropRect": {"x": 0.5, "y": 0.5, "width": 0.3, "height": 0.3}"#,
    ].map { #"{"source": "https://a.example/", \#($0)}"# }

    /// The limits for this file: low, but enough for every file that must be rendered.
    public var limits: ImageLimits {
        var limits = Self.limits
        limits.renderTime = time
        return limits
    }

    /// The limits that all files share.
    public static let limits = ImageLimits(sourcePixels: 20_000_000, decodedBytes: 128 << 20, outputPixels: 8_000_000)

    /// The memory limit of a child process, in bytes.
    public static let renderProcessMemory = 256 << 20

    /// All files.
    public static func all() -> [MalformedImage] {
        PNGFile.malformed() + JPEGFile.malformed() + GIFFile.malformed() + WebPFile.malformed() + TIFFFile.malformed()
            + HEIFFile.malformed() + BitmapFile.malformed() + SVGFile.malformed() + PDFFile.malformed()
            + compressedStreams() + nonImages()
            + polyglots()
    }
}
