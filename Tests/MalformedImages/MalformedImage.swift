import HalcyonImaging
import HalcyonModel

/// A file that somebody may send, and how rendering it must end.
public struct MalformedImage: Sendable, CustomStringConvertible {
    /// How a rendering may end.
    public indirect enum End: Sendable, Hashable {
        /// An image comes out.
        case renders
        /// It is refused with one of these codes.
        case fails([JobErrorCode])
        /// Both are right: decoders differ in what they forgive, and the bytes leave it open.
        case rendersOrFails([JobErrorCode])
        /// Each of ``MalformedImage/jobs`` has an end of its own.
        case each([End])
    }

    /// The format, then what is wrong with it.
    public let name: String
    private let make: @Sendable () -> [UInt8]
    /// How every rendering of it must end.
    public let end: End
    /// How long one rendering may take.
    public private(set) var time = Duration.seconds(600)
    /// Whether its header does not tell what it takes, so that it is stopped by what a child may have and by nothing
    /// before.
    public private(set) var isBoundByChild = false

    /// For the names of tests.
    public var description: String { name }

    init(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8], _ end: End) {
        self.name = name
        make = bytes
        self.end = end
    }

    /// The file, made anew.
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

    /// Refused, and which of the two codes it gets is the decoder's affair: whether it stumbles over the header or believes it.
    static func fails(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> MalformedImage {
        MalformedImage(name, bytes(), .fails([.corruptImage, .tooManyPixels, .unsupportedFormat]))
    }

    /// Decoders differ in whether they forgive it.
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
    /// Something that would go on for hours: it ends as a timeout, after a short while.
    static func endless(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> MalformedImage {
        var file = MalformedImage(name, bytes(), .fails([.timeout]))
        file.time = .seconds(2)
        return file
    }

    /// Something that goes on for long where the library has no limit of its own, or a wide one.
    static func long(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> MalformedImage {
        var file = MalformedImage(name, bytes(), .rendersOrFails([.corruptImage, .timeout]))
        file.time = .seconds(2)
        return file
    }

    /// An animation of more frames than are allowed: its first one can be had, as a still picture.
    static func movesTooLong(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> MalformedImage
    {
        MalformedImage(name, bytes(), .each([.renders, .renders, .renders, .fails([.tooManyPixels])]))
    }

    /// The file, bound by the memory of a child.
    func boundByChild() -> MalformedImage {
        var file = self
        file.isBoundByChild = true
        return file
    }
}

extension MalformedImage {
    /// The ways in which each file is rendered: shrunk on loading where that is possible; whole; with excess and slow
    /// to encode, and again from the same pixels; and a part of it, with all its frames.
    public static let jobs = [
        #""width": 100, "height": 100, "format": "jpeg""#,
        #""sizer": "natural", "format": "png""#,
        #""width": 90, "height": 60, "contentMode": "contain", "variants": [{"format": "avif"}, {"format": "png"}]"#,
        #""width": 9, "height": 9, "cropRect": {"x": 0.5, "y": 0.5, "width": 0.3, "height": 0.3}"#,
    ].map { #"{"source": "https://a.example/", \#($0)}"# }

    /// What rendering a file may cost here: enough for every one that is to be rendered, and little.
    public var limits: ImageLimits {
        var limits = Self.limits
        limits.renderTime = time
        return limits
    }

    /// What rendering any file may cost.
    public static let limits = ImageLimits(sourcePixels: 20_000_000, decodedBytes: 128 << 20, outputPixels: 8_000_000)

    /// Bytes of memory that a child may have.
    public static let renderProcessMemory = 256 << 20

    /// Every file.
    public static func all() -> [MalformedImage] {
        PNGFile.hostile() + JPEGFile.hostile() + GIFFile.hostile() + WebPFile.hostile() + TIFFFile.hostile()
            + HEIFFile.hostile() + SVGFile.hostile() + PDFFile.hostile() + compressedStreams() + noImages()
            + polyglots()
    }
}
