import CLinux
import Glibc
import HalcyonModel
import Processes
import Threads

/// Makes pictures of frames.
///
/// The video is loaded like any source, under the same rules; ffmpeg gets its bytes and never a URL.
struct VideoProvider: SourceProvider {
    /// A frame, and for whom and with what its video is asked for.
    struct Reference: Sendable {
        let video: VideoSource
        /// Of the video.
        let request: SourceRequest

        /// - Parameter request: of the frame.
        init(_ video: VideoSource, _ request: SourceRequest) {
            self.video = video
            self.request = SourceRequest(video.input, tenant: request.tenant, headers: request.headers)
        }
    }

    private let options: VideoOptions
    private let extractor: FrameExtractor
    private let fetchVideo: @Sendable (SourceRequest, Validators?) async throws -> FetchResponse
    /// How many frames are looked for at once.
    private let places: Slots

    /// - Parameters:
    ///   - maximumBytes: of a frame as a PNG file.
    ///   - places: how many frames are looked for at once.
    ///   - fetchVideo: fetches a video of up to ``VideoOptions/maximumBytes``.
    init(
        _ options: VideoOptions, maximumBytes: Int, places: Int,
        fetchVideo: @escaping @Sendable (SourceRequest, Validators?) async throws -> FetchResponse
    ) {
        self.options = options
        self.fetchVideo = fetchVideo
        self.places = Slots(places)
        extractor = FrameExtractor(options: options, maximumBytes: maximumBytes)
    }

    /// A frame is as fresh as its video, and changes with it.
    /// - Throws: ``Failure``: what fetching the video throws; `provider_error` when there is no such frame, or no
    ///   ffmpeg; `timeout`; `too_large`. `CancellationError`.
    func fetch(_ reference: Reference, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        // Before the video is loaded for nothing.
        guard findExecutable(VideoOptions.program) != nil else {
            throw Failure(
                .providerError,
                "frames of videos need ffmpeg, which is not on this machine; Debian's package is ffmpeg",
                isRetryable: false)
        }
        let response = try await video(reference.request, ifNoneMatch: known)
        guard case .loaded(var loaded) = response else { return response }
        try await places.acquire()
        defer { places.release() }
        let file = try await blocking { [body = loaded.body] () throws(Failure) in try MemoryFile.holding(body) }
        loaded.body = []
        loaded.body = try await extractor.frame(at: reference.video.place, of: file)
        return .loaded(loaded)
    }

    private func video(_ request: SourceRequest, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        do {
            return try await fetchVideo(request, known)
        } catch var failure as Failure where failure.code == .tooLarge {
            failure.message =
                "the video has more than \(options.maximumBytes) bytes, the limit sources.video.maximumBytes"
            throw failure
        }
    }
}

/// What a frame of a video may cost.
public struct VideoOptions: Sendable {
    /// The program that reads videos: a path, or a name looked up in PATH.
    public static let program = "ffmpeg"

    /// For finding and decoding one frame.
    public var time = Duration.seconds(20)
    /// Bytes of memory of one ffmpeg.
    public var memory = 512 << 20
    /// Bytes of the largest video. It is in memory while it is loaded.
    public var maximumBytes = 64 << 20

    /// The defaults.
    public init() {}
}

/// A file in memory, for a program that has to move about in its input: it needs no folder that can be written to, and is gone when
/// nobody has it open any more, however they end.
final class MemoryFile: Sendable {
    /// At the file's beginning.
    let descriptor: Int32

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// It takes as long as copying does: not for the cooperative pool.
    /// - Throws: ``Failure`` `provider_error` when there is no memory or no descriptor left.
    static func holding(_ bytes: [UInt8]) throws(Failure) -> MemoryFile {
        let descriptor = clinux_memory_file("halcyon-video")
        guard descriptor >= 0 else { throw .noMemoryFile(errno) }
        let file = MemoryFile(descriptor)
        let code = writeAll(bytes, to: descriptor)
        guard code == 0 else { throw .noMemoryFile(code) }
        lseek(descriptor, 0, SEEK_SET)
        return file
    }

    deinit { close(descriptor) }
}

extension Failure {
    fileprivate static func noMemoryFile(_ code: Int32) -> Failure {
        Failure(.providerError, "no room for a video in memory: \(String(cString: strerror(code)))")
    }
}
