import Subprocess
import Testing

/// A small clip that ffmpeg makes: a second of red, one of green, one of blue, ten frames each, 64×32 pixels, with a white square
/// of 16 pixels in the top left corner.
public enum TestClip {
    /// The MP4 file.
    /// - Parameter isTurned: whether players are to turn it clockwise by a quarter, as phones say it: then it is seen upright
    ///   with the square in the top right corner of 32×64 pixels.
    public static func mp4(isTurned: Bool = false) async throws -> [UInt8] {
        let folder = TemporaryFolder("clip")
        let colours = ["red", "lime", "blue"].flatMap { ["-f", "lavfi", "-i", "color=\($0):s=64x32:r=10:d=1"] }
        let run = try await ChildProcess.run(
            "ffmpeg",
            ["-nostdin", "-loglevel", "error"] + colours + [
                "-filter_complex", "concat=n=3,drawbox=w=16:h=16:color=white:t=fill", "-c:v", "mpeg4", "-q:v", "2",
                "-pix_fmt", "yuv420p", "\(folder.path)/clip.mp4",
            ], timeLimit: .seconds(120), outputLimit: 0)
        var bytes = folder.read("clip.mp4")
        await folder.remove()
        guard run.end == .exit(.code(0)) else { throw NotInTime(description: "ffmpeg made no clip: \(run.errors)") }
        if isTurned { turn(&bytes) }
        return bytes
    }

    /// Writes a quarter turn into the track's header (ISO 14496-12, section 8.3.2): the matrix of nine numbers begins 40 bytes behind
    /// the name of the box.
    private static func turn(_ bytes: inout [UInt8]) {
        let name = Array("tkhd".utf8)
        guard let place = bytes.indices.dropLast(80).first(where: { bytes[$0..<$0 + 4].elementsEqual(name) }) else {
            return
        }
        let matrix: [UInt32] = [0, 0x10000, 0, 0xffff_0000, 0, 0, 32 << 16, 0, 0x4000_0000]
        let start = place + 4 + 40
        bytes.replaceSubrange(
            start..<start + 36,
            with: matrix.flatMap { number in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) } })
    }
}

extension Trait where Self == ConditionTrait {
    /// A test that needs ffmpeg, which `make deps` does not install, because of its size.
    public static var needsFFmpeg: Self {
        .enabled(if: findExecutable("ffmpeg") != nil, "there is no ffmpeg; make deps-test installs it")
    }
}
