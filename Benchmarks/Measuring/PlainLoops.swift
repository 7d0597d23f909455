import Glibc
import PlainLoop

/// The plain C loops, over files in memory.
public enum PlainLoops {
    /// What an output measures, and what the loops' outputs measure.
    public static let size = (width: 400, height: 300)

    /// Bytes written by `vips_thumbnail_buffer` over all files.
    public static func thumbnail(_ files: [[UInt8]]) -> Int { run(PLAIN_THUMBNAIL, files) }

    /// Bytes written by the fast loop: the largest shrink on load that does not undershoot, then the resize.
    public static func fast(_ files: [[UInt8]]) -> Int { run(PLAIN_FAST, files) }

    private static func run(_ mode: plain_mode, _ files: [[UInt8]]) -> Int {
        // The arrays live in `files` throughout; their storage does not move.
        let places = files.map { $0.withUnsafeBytes { $0.baseAddress } }
        let written = plain_loop(
            mode, places, files.map(\.count), Int32(files.count), Int32(size.width), Int32(size.height))
        guard written >= 0 else { exit(1) }
        return written
    }
}
