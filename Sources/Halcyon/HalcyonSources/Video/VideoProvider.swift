import CLinux
import Concurrency
import Glibc
import HalcyonModel
import Subprocess

/// A provider of video frames as images: one frame, a contact sheet, or an animated preview.
///
/// The video is loaded like any other source, under the same rules. ffmpeg receives its bytes and never a URL. Of a
/// long MP4 or QuickTime file, only the parts that the frames need are loaded.
struct VideoProvider: SourceProvider {
    /// Frames, and the request for their video.
    struct Reference: Sendable {
        let video: VideoSource
        /// The request for the video.
        let request: SourceRequest

        /// Creates a reference.
        /// - Parameter request: The request for the frames.
        init(_ video: VideoSource, _ request: SourceRequest) {
            self.video = video
            self.request = SourceRequest(video.input, tenant: request.tenant, headers: request.headers)
        }
    }

    /// Fetches a video, or a part of it if the source supports ranges.
    typealias Fetch = @Sendable (SourceRequest, Validators?, Range<Int>?) async throws -> FetchResponse

    private let options: VideoOptions
    private let extractor: FrameExtractor
    private let fetchVideo: Fetch
    /// Limits the number of frames that are extracted at the same time.
    private let permits: PrioritySemaphore

    /// Creates a provider.
    /// - Parameters:
    ///   - maximumBytes: The size limit of a frame as a PNG file, in bytes.
    ///   - permits: The number of frames that may be extracted at the same time.
    ///   - fetchVideo: Fetches a video of up to ``VideoOptions/maximumBytes``.
    init(_ options: VideoOptions, maximumBytes: Int, permits: Int, fetchVideo: @escaping Fetch) {
        self.options = options
        self.fetchVideo = fetchVideo
        self.permits = PrioritySemaphore(permits)
        extractor = FrameExtractor(options: options, maximumBytes: maximumBytes)
    }

    /// Extracts the frames. They have the freshness and the validators of their video.
    /// - Throws: ``JobError``: the errors of fetching the video; `provider_error` if there is no such frame or ffmpeg
    ///   is not installed; `timeout`; `too_large`. `CancellationError`.
    func fetch(_ reference: Reference, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        // Checked first, so that the video is not fetched in vain.
        guard findExecutable(VideoOptions.program) != nil else {
            throw JobError(
                .providerError,
                "video frames require ffmpeg, which is not installed; install it (Debian package: ffmpeg)",
                isRetryable: false)
        }
        let response = try await fetchPart(reference.request, known, 0..<VideoFile.head)
        guard case .loaded(var loaded) = response else { return response }
        let load: VideoFile.Load = { try await fetchPart(reference.request, nil, $0).loaded() }
        let first = loaded
        // A response without a range, or with another one than the first bytes, is the whole video or none.
        var part = try await blocking { () throws(JobError) in try VideoFile(first) }
        if try await part?.prepare(load) != true {
            if loaded.isPart {
                guard case .loaded(let whole) = try await fetchPart(reference.request, nil, nil) else {
                    throw JobError(.internal, "unexpected \"not modified\" response to an unconditional request")
                }
                loaded = whole
            }
            part = try await blocking { [body = loaded.body] () throws(JobError) in try VideoFile(whole: body) }
        }
        loaded.body = []
        guard let part else { return response }
        loaded.body = try await picture(reference.video.selection, part, load)
        if loaded.status == 206 { loaded.status = 200 }
        for field in ["Content-Range", "Content-Length"] { loaded.headers[field] = nil }
        return .loaded(loaded)
    }

    private func picture(
        _ selection: VideoSource.Selection, _ video: VideoFile, _ load: VideoFile.Load
    ) async throws -> [UInt8] {
        var video = video
        switch selection {
        case .frame(let seconds):
            try await video.prepare(at: seconds, limit: options.maximumBytes, load)
            return try await permitted { [video] in
                let frame = try await extractor.frame(at: VideoSource.text(of: seconds), of: video.file)
                do {
                    return try await facts(of: video).added(to: frame)
                } catch is JobError {
                    // The frame is there, without facts, if ffprobe is missing.
                    return frame
                }
            }
        case .contactSheet(let sheet):
            let frames = try await frames(sheet.columns * sheet.rows, sheet.width, of: video, load)
            let height = frames.frames[0].count / 3 / sheet.width
            let pixels = Self.sheet(frames.frames, sheet)
            let file = try await blocking { () throws(JobError) in try MemoryFile.holding(pixels) }
            return try await permitted {
                let png = try await extractor.encode(
                    file, width: sheet.width * sheet.columns, height: height * sheet.rows, rate: nil)
                return frames.facts.added(to: png)
            }
        case .preview(let preview):
            let frames = try await frames(preview.frames, preview.width, of: video, load).frames
            let height = frames[0].count / 3 / preview.width
            let file = try await blocking { () throws(JobError) in try MemoryFile.holding(Array(frames.joined())) }
            return try await permitted {
                try await extractor.encode(
                    file, width: preview.width, height: height, rate: Double(preview.frames) / preview.duration)
            }
        }
    }

    /// Extracts frames from the middle of equal parts of a video. A frame that is missing, or has another size than the
    /// first one, is that before it.
    private func frames(
        _ count: Int, _ width: Int, of video: VideoFile, _ load: VideoFile.Load
    ) async throws -> (frames: [[UInt8]], facts: VideoFacts) {
        var video = video
        let facts = try await permitted { [video] in try await self.facts(of: video) }
        guard let milliseconds = facts.milliseconds, milliseconds > 0 else {
            throw JobError(.providerError, "the video does not tell its duration", isRetryable: false)
        }
        let duration = Double(milliseconds) / 1000
        let end = ContinuousClock.now + options.time * VideoOptions.timesForAll
        var frames: [[UInt8]] = []
        for index in 0..<count {
            guard ContinuousClock.now < end else {
                throw JobError(
                    .timeout,
                    "\(count) frames exceeded \(VideoOptions.timesForAll) times the limit set by sources.video.timeout")
            }
            let seconds = duration * (Double(index) + 0.5) / Double(count)
            try await video.prepare(at: seconds, limit: options.maximumBytes, load)
            let frame = try await permitted { [video] in
                try await extractor.pixels(at: seconds, width: width, of: video.file)
            }
            guard let frame = frame ?? frames.last else { continue }
            frames.append(frames.first.map { $0.count == frame.count } ?? true ? frame : frames[frames.count - 1])
        }
        guard let first = frames.first, !first.isEmpty, first.count.isMultiple(of: width * 3) else {
            throw JobError(.providerError, "the video has no frames", isRetryable: false)
        }
        return (Array(repeating: first, count: count - frames.count) + frames, facts)
    }

    /// Places frames of equal size in rows, from the left and from the top.
    static func sheet(_ frames: [[UInt8]], _ sheet: VideoSource.ContactSheet) -> [UInt8] {
        let row = sheet.width * 3
        let height = frames[0].count / row
        var pixels: [UInt8] = []
        pixels.reserveCapacity(frames.count * frames[0].count)
        for line in 0..<sheet.rows {
            for y in 0..<height {
                let start = y * row
                for column in 0..<sheet.columns {
                    pixels += frames[line * sheet.columns + column][start..<start + row]
                }
            }
        }
        return pixels
    }

    private func facts(of video: VideoFile) async throws -> VideoFacts {
        if let index = video.index { return VideoFacts(codec: index.codec, seconds: index.duration) }
        return try await extractor.facts(of: video.file)
    }

    private func permitted<Value>(_ body: () async throws -> Value) async throws -> Value {
        try await permits.acquire()
        defer { permits.release() }
        return try await body()
    }

    private func fetchPart(
        _ request: SourceRequest, _ known: Validators?, _ range: Range<Int>?
    ) async throws -> FetchResponse {
        do {
            return try await fetchVideo(request, known, range)
        } catch var failure as JobError where failure.code == .tooLarge {
            failure.message =
                "the video exceeds \(options.maximumBytes) bytes, the limit set by sources.video.maximumBytes"
            throw failure
        }
    }
}

/// Limits for extracting video frames.
public struct VideoOptions: Sendable {
    /// The ffmpeg executable: a path, or a name looked up in PATH.
    public static let program = "ffmpeg"
    /// The factor by which the timeout of one frame is multiplied for all frames of a contact sheet or a preview.
    static let timesForAll = 4

    /// The timeout for seeking to and decoding one frame.
    public var time = Duration.seconds(20)
    /// The memory limit of one ffmpeg process, in bytes.
    public var memory = 512 << 20
    /// The maximum number of bytes of a video that are loaded. They are in memory while the video is processed.
    public var maximumBytes = 64 << 20

    /// Creates options with default values.
    public init() {}
}

/// A file in memory, for a program that must seek in its input. It needs no writable folder. The kernel frees it when
/// all processes that have it open have exited, even after a crash.
final class MemoryFile: Sendable {
    /// The file descriptor.
    let descriptor: Int32

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Creates a file with the given content. The call copies the bytes, so do not make it on the cooperative pool.
    /// - Throws: ``JobError`` `provider_error` if memory or descriptors are exhausted.
    static func holding(_ bytes: [UInt8]) throws(JobError) -> MemoryFile {
        let descriptor = clinux_memory_file("halcyon-video")
        guard descriptor >= 0 else { throw .noMemoryFile(errno) }
        let file = MemoryFile(descriptor)
        let code = DescriptorIO.writeAll(bytes, to: descriptor)
        guard code == 0 else { throw .noMemoryFile(code) }
        lseek(descriptor, 0, SEEK_SET)
        return file
    }

    deinit { close(descriptor) }
}

extension JobError {
    /// Creates the error for a file in memory that cannot be created or extended.
    static func noMemoryFile(_ code: Int32) -> JobError {
        JobError(.providerError, "failed to store the video in memory: \(String(cString: strerror(code)))")
    }
}
