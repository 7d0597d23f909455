import Glibc
import HalcyonModel
import Subprocess

/// Extracts a frame from a video with ffmpeg.
struct FrameExtractor: Sendable {
    let options: VideoOptions
    /// The size limit of the frame as a PNG file, in bytes.
    let maximumBytes: Int

    /// Extracts a frame.
    /// - Parameter seconds: The position in seconds from the beginning.
    /// - Throws: ``JobError``, `CancellationError`.
    func frame(at seconds: String, of file: MemoryFile) async throws -> [UInt8] {
        let run: ProcessResult
        do {
            run = try await ChildProcess.run(
                VideoOptions.program, Self.arguments(seconds), options: childOptions(reading: file),
                timeLimit: options.time, outputLimit: maximumBytes)
        } catch let error as ChildProcessError {
            throw JobError(.providerError, "\(error)", cause: error)
        }
        // The file must stay open until ffmpeg has exited.
        withExtendedLifetime(file) {}
        switch run.end {
        case .tooLong:
            throw JobError(.timeout, "ffmpeg exceeded the limit of \(options.time) set by sources.video.timeout")
        case .tooMuch: throw JobError(tooLargeFor: maximumBytes)
        case .exit(.code(0)) where run.output.isEmpty:
            throw JobError(
                .providerError, "no video frame at or after \(seconds) s; the video is shorter", isRetryable: false)
        case .exit(.code(0)): return run.output
        case .exit(let exit):
            let words = run.errors.split(separator: "\n").last.map { ": \($0)" } ?? ""
            throw JobError(.providerError, "ffmpeg failed with \(exit)\(words)", isRetryable: false)
        }
    }

    /// The arguments of ffmpeg. It may read only its standard input and video containers. Other protocols and
    /// playlists, which refer to other files, are not allowed.
    private static func arguments(_ seconds: String) -> [String] {
        [
            "-nostdin", "-hide_banner", "-loglevel", "error", "-protocol_whitelist", "file", "-format_whitelist",
            containers, "-threads", "1", "-ss", seconds, "-i", "file:/dev/stdin",
            // The first video stream that is not a cover image. ffmpeg applies the rotation by default.
            "-map", "0:V:0", "-frames:v", "1", "-filter_threads", "1", "-threads", "1",
            // Scales non-square pixels to square ones.
            "-vf", "scale=w='max(1,round(iw*sar))':h=ih,setsar=1",
            "-c:v", "png", "-f", "image2pipe", "pipe:1",
        ]
    }

    private static let containers = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,ogg,asf"

    private func childOptions(reading file: MemoryFile) -> ChildProcess.Options {
        var child = ChildProcess.Options()
        child.environment = ["PATH": "/usr/local/bin:/usr/bin:/bin"]
        child.input = .descriptor(file.descriptor)
        child.limits = [
            Int32(RLIMIT_DATA.rawValue): UInt64(options.memory),
            Int32(RLIMIT_CPU.rawValue): UInt64(options.time.components.seconds) + 1,
            // ffmpeg writes no files and opens few.
            Int32(RLIMIT_FSIZE.rawValue): 0, Int32(RLIMIT_NOFILE.rawValue): 32, Int32(RLIMIT_CORE.rawValue): 0,
        ]
        return child
    }
}
