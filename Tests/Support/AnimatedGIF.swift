/// Animations for tests.
public enum AnimatedGIF {
    /// An animation that has the one frame of `gif` again and again.
    public static func repeating(_ gif: [UInt8], frames: Int) -> [UInt8] {
        // Behind the header of 13 bytes comes a table of colors, by the flags in it; the last byte of all is the trailer.
        let start = 13 + (gif[10] & 0x80 == 0 ? 0 : 3 << (Int(gif[10] & 7) + 1))
        let frame = gif[start..<gif.count - 1]
        return gif[..<start] + (0..<frames).flatMap { _ in frame } + [0x3b]
    }
}
