import HalcyonImaging
import HalcyonModel

/// A file that somebody may send, and how rendering it must end.
public struct HostileFile: Sendable, CustomStringConvertible {
    /// How a rendering may end.
    public enum End: Sendable, Hashable {
        /// An image comes out.
        case renders
        /// It is refused with one of these codes.
        case fails([FailureCode])
        /// Both are right: decoders differ in what they forgive, and the bytes leave it open.
        case rendersOrFails([FailureCode])
    }

    /// The format, then what is wrong with it.
    public let name: String
    private let make: @Sendable () -> [UInt8]
    /// How every rendering of it must end.
    public let end: End

    /// For the names of tests.
    public var description: String { name }

    init(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8], _ end: End) {
        self.name = name
        make = bytes
        self.end = end
    }

    /// The file, made anew.
    public func bytes() -> [UInt8] { make() }

    static func corrupt(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> HostileFile {
        HostileFile(name, bytes(), .fails([.corruptImage]))
    }

    static func tooManyPixels(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> HostileFile {
        HostileFile(name, bytes(), .fails([.tooManyPixels]))
    }

    static func unsupported(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> HostileFile {
        HostileFile(name, bytes(), .fails([.unsupportedFormat]))
    }

    /// Refused, and which of the two codes it gets is the decoder's affair: whether it stumbles over the header or believes it.
    static func fails(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> HostileFile {
        HostileFile(name, bytes(), .fails([.corruptImage, .tooManyPixels, .unsupportedFormat]))
    }

    /// Decoders differ in whether they forgive it.
    static func rendersOrFails(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> HostileFile {
        HostileFile(name, bytes(), .rendersOrFails([.corruptImage, .tooManyPixels]))
    }

    static func renders(_ name: String, _ bytes: @autoclosure @escaping @Sendable () -> [UInt8]) -> HostileFile {
        HostileFile(name, bytes(), .renders)
    }
}

extension HostileFile {
    /// Documents that are drawn rather than decoded.
    public static func drawn() -> [HostileFile] { SVGFile.hostile() + PDFFile.hostile() }

    /// Files that end in the right code, but take more memory than the limits say: libheif decodes the size that the
    /// pixels have before anybody compares it with the size that the header said.
    public static func overweight() -> [HostileFile] {
        [.corrupt("AVIF of 6000×6000 that says 64×48", HEIFFile.liar(6000, 6000, says: (64, 48)))]
    }

    /// Every file of the formats that are always served.
    public static func all() -> [HostileFile] {
        PNGFile.hostile() + JPEGFile.hostile() + GIFFile.hostile() + WebPFile.hostile() + TIFFFile.hostile()
            + HEIFFile.hostile() + noImages() + polyglots()
    }
}

extension HostileFile {
    /// What rendering a file may cost here: enough for every one that is to be rendered, and little.
    public static let limits = ImageLimits(sourcePixels: 20_000_000, decodedBytes: 128 << 20, outputPixels: 8_000_000)
}
