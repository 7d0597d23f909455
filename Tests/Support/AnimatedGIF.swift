/// Animated GIFs for tests.
public enum AnimatedGIF {
    /// Returns an animation that repeats the single frame of `gif`.
    public static func repeating(_ gif: [UInt8], frames: Int) -> [UInt8] {
        joining([[UInt8]](repeating: gif, count: frames))
    }

    /// Returns an animation of the single frames of files, in the colors of the first one. Encoders would join equal
    /// frames.
    public static func joining(_ gifs: [[UInt8]]) -> [UInt8] {
        // The header of 13 bytes is followed by a color table if its flags say so. The last byte is the trailer.
        func start(_ gif: [UInt8]) -> Int { 13 + (gif[10] & 0x80 == 0 ? 0 : 3 << (Int(gif[10] & 7) + 1)) }
        let frames: [UInt8] = gifs.flatMap { gif in gif[start(gif)..<gif.count - 1] }
        return Array(gifs[0][..<start(gifs[0])]) + frames + [0x3b]
    }
}
