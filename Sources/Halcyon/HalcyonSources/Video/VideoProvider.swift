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
    private let videos: Providers
    /// How many frames are looked for at once.
    private let places: Slots

    /// - Parameters:
    ///   - maximumBytes: of a frame as a PNG file.
    ///   - videos: loads them; its limit becomes that of videos.
    ///   - places: how many frames are looked for at once.
    init(_ options: VideoOptions, maximumBytes: Int, over videos: Providers, places: Int) {
        self.options = options
        self.videos = videos.limited(to: options.maximumBytes)
        self.places = Slots(places)
        extractor = FrameExtractor(options: options, maximumBytes: maximumBytes)
    }

    /// - Throws: ``Failure``: what loading the video throws; `provider_error` when there is no such frame, or no ffmpeg;
    ///   `timeout`; `too_large`. `CancellationError`.
    func load(_ reference: Reference) async throws -> LoadedSource {
        guard case .loaded(let frame) = try await frame(reference, unlike: nil) else {
            throw Failure(.internal, "\(reference.video.text): unchanged, and nobody had asked")
        }
        return frame
    }

    func load(_ reference: Reference, unlike known: Validators) async throws -> SourceAnswer {
        try await frame(reference, unlike: known)
    }

    /// A frame is as fresh as its video, and changes with it.
    private func frame(_ reference: Reference, unlike known: Validators?) async throws -> SourceAnswer {
        // Before the video is loaded for nothing.
        guard findExecutable(VideoOptions.program) != nil else {
            throw Failure(
                .providerError,
                "frames of videos need ffmpeg, which is not on this machine; Debian's package is ffmpeg",
                isRetryable: false)
        }
        let answer = try await bytes(of: reference.request, unlike: known)
        guard case .loaded(var loaded) = answer else { return answer }
        try await places.acquire()
        defer { places.release() }
        let file = try await blocking { [body = loaded.body] () throws(Failure) in try MemoryFile.holding(body) }
        loaded.body = []
        loaded.body = try await extractor.frame(at: reference.video.place, of: file)
        return .loaded(loaded)
    }

    private func bytes(of video: SourceRequest, unlike known: Validators?) async throws -> SourceAnswer {
        do {
            return try await videos.load(video, unlike: known)
        } catch var failure as Failure where failure.code == .tooLarge {
            failure.message =
                "the video has more than \(options.maximumBytes) bytes, the limit sources.video.maximumBytes"
            throw failure
        }
    }
}
