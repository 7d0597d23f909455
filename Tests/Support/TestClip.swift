import Subprocess
import Testing

/// A small video clip encoded by ffmpeg: one second each of red, green and blue at ten frames per second, 64×32 pixels,
/// with a white square of 16 pixels in the top left corner.
public enum TestClip {
    /// Encodes the clip as an MP4 file.
    /// - Parameter isTurned: True to mark the track as rotated clockwise by 90°, as phones do. Players then show 32×64
    ///   pixels with the square in the top right corner.
    public static func mp4(isTurned: Bool = false) async throws -> [UInt8] {
        let folder = TemporaryFolder("clip")
        let colors = ["red", "lime", "blue"].flatMap { ["-f", "lavfi", "-i", "color=\($0):s=64x32:r=10:d=1"] }
        let run = try await ChildProcess.run(
            "ffmpeg",
            ["-nostdin", "-loglevel", "error"] + colors + [
                "-filter_complex", "concat=n=3,drawbox=w=16:h=16:color=white:t=fill", "-c:v", "mpeg4", "-q:v", "2",
                "-pix_fmt", "yuv420p", "\(folder.path)/clip.mp4",
            ], timeLimit: .patience, outputLimit: 0)
        var bytes = folder.read("clip.mp4")
        await folder.remove()
        guard run.end == .exit(.code(0)) else {
            throw ConditionTimeout(description: "ffmpeg failed to encode the clip: \(run.errors)")
        }
        if isTurned { rotate(&bytes) }
        return bytes
    }

    /// Writes a 90° rotation into the track header box (ISO 14496-12, section 8.3.2). Its matrix of nine numbers starts
    /// 40 bytes after the name of the box.
    private static func rotate(_ bytes: inout [UInt8]) {
        let name = Array("tkhd".utf8)
        guard let box = bytes.indices.dropLast(80).first(where: { bytes[$0..<$0 + 4].elementsEqual(name) }) else {
            return
        }
        let matrix: [UInt32] = [0, 0x10000, 0, 0xffff_0000, 0, 0, 32 << 16, 0, 0x4000_0000]
        let start = box + 4 + 40
        bytes.replaceSubrange(
            start..<start + 36,
            with: matrix.flatMap { number in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) } })
    }
}

extension Trait where Self == ConditionTrait {
    /// A test that needs ffmpeg. `make deps` does not install it because of its size.
    public static var needsFFmpeg: Self {
        .enabled(if: findExecutable("ffmpeg") != nil, "ffmpeg is not installed; make deps-test installs it")
    }
}
