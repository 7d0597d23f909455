import CLinux
import Concurrency
import Glibc
import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonSources

/// Frames extracted by ffmpeg and decoded by libvips.
@Suite(.limitedParallelism, .needsFFmpeg) struct VideoProviderTests {
    private struct Picture: Sendable {
        let width: Int
        let height: Int
        let pixels: [UInt8]

        init(_ file: [UInt8]) async throws {
            self = try await blocking {
                VipsLibrary.start()
                defer { VipsLibrary.endThread() }
                let image = try EncodedImage(file).open()
                return Picture(width: image.width, height: image.height, pixels: try image.pixels())
            }
        }

        private init(width: Int, height: Int, pixels: [UInt8]) {
            (self.width, self.height, self.pixels) = (width, height, pixels)
        }

        /// Returns the nearest of four colors to a pixel.
        func color(_ x: Int, _ y: Int) -> String {
            let place = (y * width + x) * (pixels.count / width / height)
            return switch pixels[place..<place + 3].map({ $0 > 127 }) {
            case [true, false, false]: "red"
            case [false, true, false]: "green"
            case [false, false, true]: "blue"
            case [true, true, true]: "white"
            default: "\(pixels[place..<place + 3])"
            }
        }

        /// The colors of the corners, clockwise from the top left, and of the center.
        var corners: [String] {
            [
                color(2, 2), color(width - 3, 2), color(width - 3, height - 3), color(2, height - 3),
                color(width / 2, height / 2),
            ]
        }
    }

    private static func source(_ bytes: [UInt8], seconds: Double) throws -> Source {
        .video(try VideoSource(.data(try DataSource(bytes, name: "clip")), seconds: seconds))
    }

    @Test(arguments: [(0, "red"), (0.95, "green"), (1.5, "green"), (2.5, "blue"), (2.9, "blue")])
    func extractsTheFrameAtTheGivenTime(seconds: Double, colour: String) async throws {
        let clip = try await TestClip.mp4()
        let frame = try await withLoader { try await $0.load(try Self.source(clip, seconds: seconds)) }
        let picture = try await Picture(frame.body)
        #expect(picture.width == 64 && picture.height == 32)
        #expect(picture.corners == ["white", colour, colour, colour, colour])
    }

    @Test func appliesRotation() async throws {
        let clip = try await TestClip.mp4(isTurned: true)
        let frame = try await withLoader { try await $0.load(try Self.source(clip, seconds: 1.5)) }
        let picture = try await Picture(frame.body)
        #expect(picture.width == 32 && picture.height == 64)
        #expect(picture.corners == ["green", "white", "green", "green", "green"])
    }

    @Test(arguments: [3.0, 100, 86_400]) func failsForTimesAfterTheEnd(seconds: Double) async throws {
        let clip = try await TestClip.mp4()
        try await withLoader { loader in
            let failure = try #require(try await loader.failure(of: try Self.source(clip, seconds: seconds)))
            #expect(
                failure.code == .providerError && !failure.isRetryable && failure.message.contains("video is shorter"),
                "\(failure)")
        }
    }

    /// The video is loaded by the provider of its URL or file, under the rules of that provider and with its freshness.
    @Test func loadsVideosUnderTheRulesOfTheirSource() async throws {
        let clip = try await TestClip.mp4()
        let folder = TemporaryFolder("video")
        let origin = try await Nginx.start(serving: folder.path, "add_header Cache-Control max-age=77;")
        folder.write(clip, to: "clip.mp4")
        let web = Source.video(try VideoSource(try Source("\(origin.url)/clip.mp4"), seconds: 1.5))
        let file = Source.video(try VideoSource(try Source("file://\(folder.path)/clip.mp4"), seconds: 1.5))
        try await withLoader { loader in
            let refused = try await loader.failure(of: web)
            #expect(refused?.code == .blockedAddress)
            let forbidden = try await loader.failure(of: file)
            #expect(forbidden?.code == .forbidden)
        }
        #expect(origin.requests().isEmpty)
        try await withLoader({
            $0.policy = AddressPolicy(allow: ["127.0.0.1"])
            $0.fileRoots = [folder.path]
        }) { loader in
            let frame = try await loader.load(web)
            #expect(frame.body.starts(with: [0x89, 0x50, 0x4e, 0x47]) && frame.validators.etag != nil)
            #expect(ResultTTL(maxAge: 0, headers: frame.headers, completedAt: frame.completedAt) == .seconds(77))
            let same = try await loader.load(file)
            #expect(same.body == frame.body)
            guard case .notModified = try await loader.load(file, ifNoneMatch: same.validators) else {
                Issue.record("the frame was extracted again")
                return
            }
        }
        await origin.stop()
        await folder.remove()
    }

    @Test func videosHaveTheirOwnSizeLimit() async throws {
        let clip = try await TestClip.mp4()
        let folder = TemporaryFolder("video")
        let source = Source.video(
            try VideoSource(try Source("file://\(folder.write(clip, to: "clip.mp4"))"), seconds: 1.5))
        for (limit, isLoaded) in [(clip.count, true), (clip.count - 1, false)] {
            try await withLoader({
                $0.fileRoots = [folder.path]
                $0.maximumBytes = 1000
                $0.video.maximumBytes = limit
            }) { loader in
                let failure = try await loader.failure(of: source)
                #expect(isLoaded == (failure == nil), "\(String(describing: failure))")
                if let failure {
                    #expect(failure.code == .tooLarge && failure.message.contains("sources.video.maximumBytes"))
                }
            }
        }
        // A frame is limited like any other source.
        try await withLoader({
            $0.fileRoots = [folder.path]
            $0.maximumBytes = 20
        }) { loader in
            let failure = try await loader.failure(of: source)
            #expect(failure?.code == .tooLarge)
        }
        await folder.remove()
    }

    /// A playlist names other files, which ffmpeg would open.
    @Test(arguments: [
        "#EXTM3U\n#EXTINF:1,\nfile://CLIP\n#EXT-X-ENDLIST\n", "ffconcat version 1.0\nfile CLIP\n", "no video",
    ])
    func rejectsPlaylistsAndOtherFormats(text: String) async throws {
        let folder = TemporaryFolder("video")
        let clip = folder.write(try await TestClip.mp4(), to: "clip.mp4")
        try await withLoader { loader in
            let bytes = Array(text.replacing("CLIP", with: clip).utf8)
            let failure = try #require(try await loader.failure(of: try Self.source(bytes, seconds: 0)))
            #expect(
                failure.code == .providerError && !failure.isRetryable && failure.message.contains("ffmpeg failed"),
                "\(failure)")
        }
        await folder.remove()
    }

    @Test func limitsMemoryAndTime() async throws {
        let file = try MemoryFile.holding(try await TestClip.mp4())
        var options = VideoOptions()
        // Processes have no memory limits under a sanitizer.
        if !clinux_has_sanitizer() {
            options.memory = 8 << 20
            let small = FrameExtractor(options: options, maximumBytes: 1 << 20)
            let poor = await #expect(throws: JobError.self) { try await small.frame(at: "1.5", of: file) }
            #expect(poor?.code == .providerError)
        }
        options = VideoOptions()
        options.time = .milliseconds(1)
        let hasty = FrameExtractor(options: options, maximumBytes: 1 << 20)
        let late = await #expect(throws: JobError.self) { try await hasty.frame(at: "1.5", of: file) }
        #expect(late?.code == .timeout && late?.message.contains("sources.video.timeout") == true)
    }

    @Test func videoIsHeldInAnUnlinkedFile() async throws {
        let clip = try await TestClip.mp4()
        let file = try MemoryFile.holding(clip)
        let link = try #require(realLink(of: file.descriptor))
        #expect(link.hasSuffix("(deleted)"))
        let frame = try await FrameExtractor(options: VideoOptions(), maximumBytes: 1 << 20).frame(at: "0", of: file)
        #expect(!frame.isEmpty)
    }

    private func realLink(of descriptor: Int32) -> String? {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/fd/\(descriptor)", &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
    }
}
