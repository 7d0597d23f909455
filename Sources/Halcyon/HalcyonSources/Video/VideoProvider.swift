import CLinux
import Concurrency
import Glibc
import HalcyonModel
import Subprocess

/// A provider of video frames as images.
///
/// The video is fetched like any other source, under the same rules. ffmpeg receives its bytes and never a URL.
struct VideoProvider: SourceProvider {
    /// A frame, and the request for its video.
    struct Reference: Sendable {
        let video: VideoSource
        /// The request for the video.
        let request: SourceRequest

        /// Creates a reference.
        /// - Parameter request: The request for the frame.
        init(_ video: VideoSource, _ request: SourceRequest) {
            self.video = video
            self.request = SourceRequest(video.input, tenant: request.tenant, headers: request.headers)
        }
    }

    private let options: VideoOptions
    private let extractor: FrameExtractor
    private let fetchVideo: @Sendable (SourceRequest, Validators?) async throws -> FetchResponse
    /// Limits the number of frames that are extracted at the same time.
    private let permits: PrioritySemaphore

    /// Creates a provider.
    /// - Parameters:
    ///   - maximumBytes: The size limit of a frame as a PNG file, in bytes.
    ///   - permits: The number of frames that may be extracted at the same time.
    ///   - fetchVideo: Fetches a video of up to ``VideoOptions/maximumBytes``.
    init(
        _ options: VideoOptions, maximumBytes: Int, permits: Int,
        fetchVideo: @escaping @Sendable (SourceRequest, Validators?) async throws -> FetchResponse
    ) {
        self.options = options
        self.fetchVideo = fetchVideo
        self.permits = PrioritySemaphore(permits)
        extractor = FrameExtractor(options: options, maximumBytes: maximumBytes)
    }

    /// Extracts a frame. It has the freshness and the validators of its video.
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
        let response = try await video(reference.request, ifNoneMatch: known)
        guard case .loaded(var loaded) = response else { return response }
        try await permits.acquire()
        defer { permits.release() }
        let file = try await blocking { [body = loaded.body] () throws(JobError) in try MemoryFile.holding(body) }
        loaded.body = []
        loaded.body = try await extractor.frame(at: reference.video.place, of: file)
        return .loaded(loaded)
    }

    private func video(_ request: SourceRequest, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        do {
            return try await fetchVideo(request, known)
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

    /// The timeout for seeking to and decoding one frame.
    public var time = Duration.seconds(20)
    /// The memory limit of one ffmpeg process, in bytes.
    public var memory = 512 << 20
    /// The size limit of a video, in bytes. The video is in memory while it is processed.
    public var maximumBytes = 64 << 20

    /// Creates options with default values.
    public init() {}
}

/// A file in memory, for a program that must seek in its input. It needs no writable folder. The kernel frees it when
/// all processes that have it open have exited, even after a crash.
final class MemoryFile: Sendable {
    /// The file descriptor, positioned at the beginning.
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
    fileprivate static func noMemoryFile(_ code: Int32) -> JobError {
        JobError(.providerError, "failed to store the video in memory: \(String(cString: strerror(code)))")
    }
}
