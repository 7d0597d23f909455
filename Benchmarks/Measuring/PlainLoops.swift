import Glibc
import PlainLoop

/// The plain C loops, over files in memory. libvips must have been started.
public enum PlainLoops {
    /// What the loops make of each picture, when nothing else is said: a JPEG of 400×300.
    public static let usual = Output(width: 400, height: 300, suffix: ".jpg[Q=80,strip]")

    /// What the loops make of each picture.
    public struct Output: Sendable {
        /// Pixels across.
        public let width: Int
        /// Pixels down.
        public let height: Int
        /// libvips' name of a file with the saver's options: `.jpg[Q=80,strip]`.
        public let suffix: String

        /// Takes the values as they are.
        public init(width: Int, height: Int, suffix: String) {
            self.width = width
            self.height = height
            self.suffix = suffix
        }
    }

    /// Bytes written by `vips_thumbnail_buffer` over all files.
    public static func thumbnail(_ files: [[UInt8]], _ output: Output = usual) -> Int {
        run(PLAIN_THUMBNAIL, files, output)
    }

    /// Bytes written by the fast loop: the largest shrink on load that does not undershoot, then the resize.
    public static func fast(_ files: [[UInt8]], _ output: Output = usual) -> Int { run(PLAIN_FAST, files, output) }

    private static func run(_ mode: plain_mode, _ files: [[UInt8]], _ output: Output) -> Int {
        // The arrays live in `files` throughout; their storage does not move.
        let places = files.map { $0.withUnsafeBytes { $0.baseAddress } }
        let written = output.suffix.withCString { suffix in
            var wanted = plain_output(width: Int32(output.width), height: Int32(output.height), suffix: suffix)
            return plain_loop(mode, &wanted, places, files.map(\.count), Int32(files.count))
        }
        guard written >= 0 else { exit(1) }
        return written
    }
}
