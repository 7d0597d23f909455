import Glibc
import HalcyonModel
import Processes

/// Has ffmpeg find a frame in a video.
struct FrameExtractor: Sendable {
    let options: VideoOptions
    /// Of the frame as a PNG file.
    let maximumBytes: Int

    /// - Parameter place: seconds from the beginning.
    /// - Throws: ``Failure``, `CancellationError`.
    func frame(at place: String, of file: MemoryFile) async throws -> [UInt8] {
        let run: ChildRun
        do {
            run = try await ChildProcess.run(
                VideoOptions.program, Self.arguments(place), options: childOptions(reading: file),
                timeLimit: options.time, outputLimit: maximumBytes)
        } catch let error as ChildProcessError {
            throw Failure(.providerError, "\(error)", cause: error)
        }
        // It is open until ffmpeg has ended.
        withExtendedLifetime(file) {}
        switch run.end {
        case .tooLong: throw Failure(.timeout, "ffmpeg took longer than \(options.time), the limit sources.video.time")
        case .tooMuch: throw Failure(tooLargeFor: maximumBytes)
        case .exit(.code(0)) where run.output.isEmpty:
            throw Failure(
                .providerError, "the video has no frame at \(place) s or later: it is shorter", isRetryable: false)
        case .exit(.code(0)): return run.output
        case .exit(let exit):
            let words = run.errors.split(separator: "\n").last.map { ": \($0)" } ?? ""
            throw Failure(.providerError, "ffmpeg ended with \(exit)\(words)", isRetryable: false)
        }
    }

    /// What ffmpeg may read: its standard input, and no protocol that would lead from there elsewhere; containers of
    /// videos, and no playlist, which names other files.
    private static func arguments(_ place: String) -> [String] {
        [
            "-nostdin", "-hide_banner", "-loglevel", "error", "-protocol_whitelist", "file", "-format_whitelist",
            containers, "-threads", "1", "-ss", place, "-i", "file:/dev/stdin",
            // The first video that is no cover picture; turned upright by ffmpeg, which is its default.
            "-map", "0:V:0", "-frames:v", "1", "-filter_threads", "1", "-threads", "1",
            // Pixels that are not square, made so.
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
            // It has nothing to write to, and little to open.
            Int32(RLIMIT_FSIZE.rawValue): 0, Int32(RLIMIT_NOFILE.rawValue): 32, Int32(RLIMIT_CORE.rawValue): 0,
        ]
        return child
    }
}
