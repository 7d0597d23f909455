/// Animated GIFs for tests.
public enum AnimatedGIF {
    /// Returns an animation that repeats the single frame of `gif`.
    public static func repeating(_ gif: [UInt8], frames: Int) -> [UInt8] {
        // The header of 13 bytes is followed by a color table if its flags say so. The last byte is the trailer.
        let start = 13 + (gif[10] & 0x80 == 0 ? 0 : 3 << (Int(gif[10] & 7) + 1))
        let frame = gif[start..<gif.count - 1]
        return gif[..<start] + (0..<frames).flatMap { _ in frame } + [0x3b]
    }
}
