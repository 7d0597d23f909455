import Glibc
import HalcyonModel
import Subprocess

/// Extracts frames from a video with ffmpeg.
struct FrameExtractor: Sendable {
    let options: VideoOptions
    /// The size limit of the frame as a PNG file, in bytes.
    let maximumBytes: Int

    /// Extracts a frame as a PNG file.
    /// - Parameter seconds: The position in seconds from the beginning.
    /// - Throws: ``JobError``, `CancellationError`.
    func frame(at seconds: String, of file: MemoryFile) async throws -> [UInt8] {
        let output = try await decode(
            Self.seeking(seconds) + ["-vf", Self.square, "-c:v", "png", "-f", "image2pipe", "pipe:1"], file,
            maximumBytes)
        guard !output.isEmpty else {
            throw JobError(
                .providerError, "no video frame at or after \(seconds) s; the video is shorter", isRetryable: false)
        }
        return output
    }

    /// Extracts a frame as rows of pixels of three bytes, red, green and blue. nil if there is no frame at the time or
    /// later.
    /// - Parameter width: The width in pixels. The height follows from the aspect ratio, and is at most twice the
    ///   width. A narrower frame has black margins.
    /// - Throws: ``JobError``, `CancellationError`.
    func pixels(at seconds: Double, width: Int, of file: MemoryFile) async throws -> [UInt8]? {
        let fit =
            "\(Self.square),scale=w=\(width):h=\(width * 2):force_original_aspect_ratio=decrease:flags=area,"
            + "pad=\(width):ih:-1:-1"
        let output = try await decode(
            Self.seeking("\(seconds)") + ["-vf", fit, "-pix_fmt", "rgb24", "-f", "rawvideo", "pipe:1"], file,
            width * width * 6)
        return output.isEmpty ? nil : output
    }

    /// Encodes rows of pixels, frame after frame: one as a PNG file, several as an animated, lossless WebP file.
    /// - Parameter rate: The number of frames per second; nil for a single frame.
    /// - Throws: ``JobError``, `CancellationError`.
    func encode(_ pixels: MemoryFile, width: Int, height: Int, rate: Double?) async throws -> [UInt8] {
        let input = [
            "-f", "rawvideo", "-pix_fmt", "rgb24", "-video_size", "\(width)x\(height)", "-framerate", "\(rate ?? 1)",
            "-i", "file:/dev/stdin",
        ]
        let output =
            rate == nil
            ? ["-frames:v", "1", "-c:v", "png", "-f", "image2pipe", "pipe:1"]
            : [
                "-c:v", "libwebp_anim", "-lossless", "1", "-compression_level", "1", "-loop", "0", "-f", "webp",
                "pipe:1",
            ]
        return try await decode(input + output, pixels, maximumBytes)
    }

    /// Reads the codec and the duration of a video.
    /// - Throws: ``JobError``, `CancellationError`.
    func facts(of file: MemoryFile) async throws -> VideoFacts {
        let arguments =
            ["-v", "error"] + Self.formats + [
                "-select_streams", "V:0", "-show_entries", "stream=codec_name:format=duration", "-of",
                "default=noprint_wrappers=1", "file:/dev/stdin",
            ]
        let output = try await run("ffprobe", arguments, file, 64 << 10)
        var fields: [Substring: Substring] = [:]
        for line in String(decoding: output, as: UTF8.self).split(separator: "\n") {
            let parts = line.split(separator: "=", maxSplits: 1)
            if parts.count == 2 { fields[parts[0]] = parts[1] }
        }
        guard let codec = fields["codec_name"] else {
            throw JobError(.providerError, "the file has no video", isRetryable: false)
        }
        return VideoFacts(codec: String(codec), seconds: fields["duration"].flatMap { Double($0) })
    }

    private func decode(_ arguments: [String], _ file: MemoryFile, _ outputLimit: Int) async throws -> [UInt8] {
        try await run(
            VideoOptions.program, ["-nostdin", "-hide_banner", "-loglevel", "error"] + arguments, file, outputLimit)
    }

    private func run(
        _ program: String, _ arguments: [String], _ file: MemoryFile, _ outputLimit: Int
    ) async throws -> [UInt8] {
        let run: ProcessResult
        do {
            // Each program starts at the beginning of the file, whose position they share.
            lseek(file.descriptor, 0, SEEK_SET)
            run = try await ChildProcess.run(
                program, arguments, options: childOptions(reading: file), timeLimit: options.time,
                outputLimit: outputLimit)
        } catch let error as ChildProcessError {
            throw JobError(.providerError, "\(error)", cause: error)
        }
        // The file must stay open until the program has exited.
        withExtendedLifetime(file) {}
        switch run.end {
        case .tooLong:
            throw JobError(.timeout, "\(program) exceeded the limit of \(options.time) set by sources.video.timeout")
        case .tooMuch: throw JobError(tooLargeFor: outputLimit)
        case .exit(.code(0)): return run.output
        case .exit(let exit):
            let words = run.errors.split(separator: "\n").last.map { ": \($0)" } ?? ""
            throw JobError(.providerError, "\(program) failed with \(exit)\(words)", isRetryable: false)
        }
    }

    /// The options for reading a video. ffmpeg may read only its standard input and video containers. Other protocols
    /// and playlists, which refer to other files, are not allowed.
    private static let formats = [
        "-protocol_whitelist", "file", "-format_whitelist",
        "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,ogg,asf",
    ]

    private static func seeking(_ seconds: String) -> [String] {
        formats + [
            "-threads", "1", "-ss", seconds, "-i", "file:/dev/stdin",
            // The first video stream that is not a cover image. ffmpeg applies the rotation by default.
            "-map", "0:V:0", "-frames:v", "1", "-filter_threads", "1", "-threads", "1",
        ]
    }

    /// Scales non-square pixels to square ones.
    private static let square = "scale=w='max(1,round(iw*sar))':h=ih,setsar=1"

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

extension VideoFacts {
    /// Returns a PNG file with the facts in a text chunk (PNG 1.2, section 4.2.3.1) after its header.
    func added(to png: [UInt8]) -> [UInt8] {
        // The signature and the first chunk, IHDR.
        let header = 33
        guard png.count > header else { return png }
        let content = Array("tEXt\(Self.keyword)\0\(text)".utf8)
        return png[..<header] + Self.number(content.count - 4) + content + Self.number(Int(Self.checksum(of: content)))
            + png[header...]
    }

    private static func number(_ value: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }

    /// The CRC of PNG (section 3.4).
    private static func checksum(of bytes: [UInt8]) -> UInt32 {
        var sum: UInt32 = 0xffff_ffff
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum >> 1 ^ (sum & 1 == 1 ? 0xedb8_8320 : 0) }
        }
        return ~sum
    }
}
