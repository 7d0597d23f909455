import CLinux
import Concurrency
import FoundationEssentials
import Glibc
import HalcyonModel
import Subprocess
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

/// Renderings with detectors that work, and with detectors that crash, hang, lie or grow.
@Suite(.limitedParallelism) struct DetectorTests {
    static let script = Repository.path("Tests/Detectors/detector.py")

    /// A render service with a detector.
    struct Fixture: Sendable {
        let service: RenderService
        let detector: DetectorPool
        fileprivate let lines: Lock<[String]>
        fileprivate let base: RenderFixture

        /// What was logged.
        var log: [String] { lines.withLock { $0 } }

        func render(_ source: [UInt8], _ variants: [Variant], isolation: RenderService.Isolation = .whereNeeded)
            async throws -> [RenderedImage]
        {
            try await service.render(source, variants, isolation: isolation).images
        }

        func failure(_ source: [UInt8], _ variant: Variant) async -> JobError? {
            do {
                _ = try await render(source, [variant])
                return nil
            } catch {
                return error as? JobError ?? JobError(.poison, "not a JobError: \(error)")
            }
        }
    }

    static func with(
        _ command: [String], memory: Int = .max, threads: Int = 1,
        limits: ImageLimits = ImageLimits(renderTime: .seconds(600)),
        _ change: (inout DetectorOptions) -> Void = { _ in }, _ body: (Fixture) async throws -> Void
    ) async throws {
        var options = DetectorOptions()
        options.command = command
        options.timeLimit = .seconds(60)
        change(&options)
        try await RenderFixture.with(threads: threads, limits: limits, memory: memory) { base in
            let lines = Lock<[String]>([])
            let detector = DetectorPool(options) { event in
                if case .completed = event { return }
                lines.withLock { $0.append(event.description) }
            }
            let service = RenderService(
                renderer: base.renderer, pool: base.pool, children: base.children, memory: memory, detector: detector)
            let result: Result<Void, any Error>
            do {
                result = .success(
                    try await body(Fixture(service: service, detector: detector, lines: lines, base: base)))
            } catch { result = .failure(error) }
            await blocking { detector.shutdown() }
            #expect(detector.processes.isEmpty)
            try result.get()
        }
    }

    static func command(_ mode: String, _ more: String...) -> [String] { ["python3", script, mode] + more }

    static func boxes(_ boxes: [DetectedBox]) -> String {
        let texts = boxes.map {
            #"{"x":\#($0.x),"y":\#($0.y),"width":\#($0.width),"height":\#($0.height),"confidence":\#($0.confidence)}"#
        }
        return "[\(texts.joined(separator: ","))]"
    }

    static let wide = PixelSize(width: 1200, height: 400)
    static let place = DetectedBox(x: 1090 / 1200, y: 0.375, width: 80 / 1200, height: 0.2, confidence: 0.9)
    static func source(_ format: Format = .png) async throws -> [UInt8] {
        try await GravityTests.patched(wide, at: 1090, 150, as: format)
    }
    static let toFaces = GravityTests.square(.detected(DetectedGravity(.faces, fallback: .center)))
    static let hiding = Variant(
        sizing: Sizing(goal: .original), processors: [.hideFaces(FaceHiding(.blur(amount: 0.5)))],
        output: OutputOptions(format: .png))

    // MARK: Detectors that work

    @Test(arguments: [RenderService.Isolation.whereNeeded, .always], [Format.png, .jpeg])
    func keepsWhatTheDetectorFinds(_ isolation: RenderService.Isolation, _ format: Format) async throws {
        let source = try await Self.source(format)
        try await Self.with(Self.command("boxes", Self.boxes([Self.place]))) { fixture in
            let images = try await fixture.render(
                source,
                [
                    Self.toFaces, GravityTests.square(.detected(DetectedGravity(.objects, fallback: .center))),
                    GravityTests.square(.center),
                    GravityTests.square(.detected(DetectedGravity(.faces, fallback: .center, confidence: 0.95))),
                ], isolation: isolation)
            #expect(try GravityTests.patchFraction(images[0].body) > 0.035)
            #expect(images[0].sha256 == images[1].sha256)
            #expect(images[2].sha256 == images[3].sha256 && images[2].sha256 != images[0].sha256)
            #expect(fixture.log == [] && fixture.detector.processes.count == 1)
        }
    }

    /// The confidence is the number of pictures that the detector has seen.
    @Test func eachPageIsSearchedOnce() async throws {
        let source = AnimatedGIF.repeating(try await TestImages.noise(.gif, width: 60, height: 40), frames: 3)
        let variants = [2, 1, 2].map { page in
            Variant(
                sizing: Sizing(goal: .original), output: OutputOptions(format: .png, frames: 1), findings: [.faces],
                page: page)
        }
        try await Self.with(Self.command("count")) { fixture in
            let images = try await fixture.render(source, variants)
            #expect(images.map { $0.faces?.first?.confidence } == [0.02, 0.01, 0.02])
        }
    }

    @Test func picturesAreReducedAndUpright() async throws {
        // The detector checks the size and the number of samples.
        let source = try await TestImages.plain(.jpeg, width: 1800, height: 600)
        try await Self.with(
            Self.command("boxes", Self.boxes([DetectedBox(x: 0.25, y: 0.5, width: 0.25, height: 0.25)])),
            { $0.longestSide = 90 }
        ) { fixture in
            var variant = Variant(sizing: Sizing(goal: .sizer(.aspectScaleDownByWidth(400))), findings: [.faces])
            variant.output.format = .jpeg
            let image = try await fixture.render(source, [variant])[0]
            // Of 400×133 pixels.
            #expect(image.faces == [DetectedFace(PixelRect(x: 100, y: 66, width: 100, height: 34), confidence: 1)])
            variant.info = InfoOptions()
            let facts = String(decoding: try await fixture.render(source, [variant])[0].body, as: UTF8.self)
            #expect(facts.contains(#""faces":[{"x":450,"y":300,"width":450,"height":150,"confidence":1"#), "\(facts)")
        }
    }

    @Test func blursFacesAndNothingElse() async throws {
        let source = try await Self.source()
        try await Self.with(Self.command("boxes", Self.boxes([Self.place]))) { fixture in
            var pixelated = Self.hiding
            pixelated.processors = [.hideFaces(FaceHiding(.pixelate(cells: 1), margin: 0))]
            var before = Self.hiding
            (before.before, before.processors) = (before.processors, [])
            var unsure = Self.hiding
            unsure.processors = [.hideFaces(FaceHiding(.blur(amount: 0.5), confidence: 0.95))]
            let plain = Variant(sizing: Sizing(goal: .original), output: OutputOptions(format: .png))
            let images = try await fixture.render(source, [Self.hiding, pixelated, before, unsure, plain])
            let all = try images.map { try Pixels($0.body) }
            let (blurred, squares, original) = (all[0], all[1], all[4])
            #expect(images[0].sha256 == images[2].sha256 && images[3].sha256 == images[4].sha256)
            let colors = Set((1091..<1169).map { squares[$0, 200] })
            #expect(colors.count == 1, "one square")
            for y in stride(from: 0, to: 400, by: 3) {
                for x in stride(from: 0, to: 1200, by: 3) where !(1060..<1200).contains(x) || !(120..<260).contains(y) {
                    #expect(blurred[x, y] == original[x, y] && squares[x, y] == original[x, y])
                }
            }
            // The checkerboard of 8 pixels is gone.
            let rows = (1095..<1160).map { blurred[$0, 190][0] }
            #expect(try #require(rows.max()) - #require(rows.min()) < 60)
        }
    }

    @Test func processesAreReusedAndReplaced() async throws {
        let source = try await Self.source()
        let variant = Variant(sizing: Sizing(goal: .sizer(.aspectScaleDownByWidth(60))), findings: [.faces])
        try await Self.with(Self.command("count"), { $0.pictures = 3 }) { fixture in
            var found: [Double] = []
            for _ in 0..<7 {
                found.append(try #require(await fixture.render(source, [variant])[0].faces)[0].confidence)
            }
            #expect(found == [0.01, 0.02, 0.03, 0.01, 0.02, 0.03, 0.01])
        }
    }

    @Test func idleProcessThatWasKilledIsReplaced() async throws {
        let source = try await Self.source()
        try await Self.with(Self.command("photo")) { fixture in
            _ = try await fixture.render(source, [Self.hiding])
            let first = fixture.detector.processes[0]
            kill(first, SIGKILL)
            try await until("the process has ended") { fixture.detector.processes.isEmpty }
            _ = try await fixture.render(source, [Self.hiding])
            #expect(fixture.detector.processes.count == 1 && fixture.detector.processes[0] != first)
        }
    }

    // MARK: No detector

    @Test func failsClosedWithoutADetector() async throws {
        let source = try await Self.source()
        try await RenderFixture.with { fixture in
            for variant in [
                Self.hiding, Variant(sizing: Sizing(goal: .original), findings: [.faces]),
                Variant(sizing: Sizing(goal: .sizer(.natural)), findings: [.faces], info: InfoOptions()),
            ] {
                let failure = await fixture.failure(source, variant, isolation: .whereNeeded)
                #expect(failure?.code == .internal && failure?.isRetryable == false)
                #expect(failure?.message.contains("set images.detector") == true, "\(failure?.message ?? "")")
            }
            let fallen = try await fixture.service.render(source, [Self.toFaces, GravityTests.square(.center)]).images
            #expect(fallen[0].sha256 == fallen[1].sha256)
            #expect(throws: JobError.self, "the renderer itself hides no faces that were not looked for") {
                try fixture.renderer.render(source, [Self.hiding])
            }
        }
        try await Self.with(Self.command("faces-only")) { fixture in
            let objects = GravityTests.square(.detected(DetectedGravity(.objects, fallback: .center)))
            let images = try await fixture.render(source, [objects, GravityTests.square(.center)])
            #expect(images[0].sha256 == images[1].sha256 && fixture.log == [])
        }
    }

    @Test func rejectsAnimations() async throws {
        let animation = try await blocking {
            let frames = try [0, 90, 200].map { shade in
                try Image(pixels: [UInt8](repeating: shade, count: 1200), width: 20, height: 20, bands: 3)
            }
            return try Image.strip(frames, delays: [50, 50, 50], loop: 0).encoded(as: .gif)
        }
        try await Self.with(Self.command("photo")) { fixture in
            var variant = Self.hiding
            variant.output.format = .gif
            let failure = await fixture.failure(animation, variant)
            #expect(failure?.code == .unsupportedFormat && failure?.message.contains("set frames to 1") == true)
            variant.output.frames = 1
            #expect(await fixture.failure(animation, variant) == nil)
        }
    }

    // MARK: Detectors that do not work

    /// Modes, whether the detector is started twice, and a part of the message.
    @Test(arguments: [
        ("crash", JobErrorCode.internal, "signal 11"), ("exit", .internal, "the detector ended"),
        ("memory", .internal, "the detector ended"), ("garbage", .internal, "not the expected JSON"),
        ("huge", .internal, "cannot be read"), ("bodies", .internal, "cannot be read"),
        ("error", .internal, "the detector reports: out of order"), ("many", .internal, "at most 256 boxes"),
        ("nan", .internal, "not the expected JSON"), ("empty-box", .internal, "a box is empty"),
        ("far-box", .internal, "a box is empty or outside"), ("sure-box", .internal, "a box is empty"),
        ("chatty", .internal, "start: "), ("no-greeting", .internal, "not the expected JSON"),
        ("other-name", .internal, "images.detectorName is \"opencv-centerface/1\""),
        ("other-protocol", .internal, "unknown protocol version 2"), ("dies-first", .internal, "signal 11"),
    ])
    func faultsEndInTheFallbackOrAnError(_ mode: String, _ code: JobErrorCode, _ message: String) async throws {
        // Processes have no memory limits under a sanitizer.
        guard mode != "memory" || !clinux_has_sanitizer() else { return }
        let source = try await Self.source()
        try await Self.with(Self.command(mode)) { fixture in
            let failure = await fixture.failure(source, Self.hiding)
            #expect(failure?.code == code, "\(failure?.message ?? "")")
            #expect(failure?.message.contains(message) == true, "\(failure?.message ?? "")")
            let fallen = try await fixture.render(source, [Self.toFaces, GravityTests.square(.center)])
            #expect(fallen[0].sha256 == fallen[1].sha256)
            #expect(fixture.log.contains { $0.hasPrefix("failed: ") }, "\(fixture.log)")
            #expect(fixture.detector.processes.isEmpty)
            let retryable = ["crash", "exit", "memory"].contains(mode)
            #expect(failure?.isRetryable == retryable)
        }
    }

    @Test(arguments: ["hang", "half", "silent", "fork-hang"])
    func slowDetectorIsKilled(_ mode: String) async throws {
        let source = try await Self.source()
        try await Self.with(Self.command(mode), { $0.timeLimit = .milliseconds(700) }) { fixture in
            let failure = await fixture.failure(source, Self.hiding)
            #expect(failure?.code == .timeout && failure?.isRetryable == false)
            #expect(failure?.message.contains("images.detectorTimeout") == true, "\(failure?.message ?? "")")
            let fallen = try await fixture.render(source, [Self.toFaces, GravityTests.square(.center)])
            #expect(fallen[0].sha256 == fallen[1].sha256 && fixture.detector.processes.isEmpty)
        }
    }

    @Test func missingProgramIsNotStartedForEachPicture() async throws {
        let source = try await Self.source()
        try await Self.with(["/nonexistent/detector"]) { fixture in
            for _ in 0..<3 {
                let failure = await fixture.failure(source, Self.hiding)
                #expect(failure?.message.contains("cannot run /nonexistent/detector") == true)
            }
        }
        // A program that does not start is not started again at once.
        let folder = TemporaryFolder("detector")
        let file = "\(folder.path)/started"
        try await Self.with(Self.command("first", file, "dies-first")) { fixture in
            let start = ContinuousClock.now
            #expect(await fixture.failure(source, Self.hiding) != nil)
            // The second start would succeed, as it does if a busy machine takes longer than the pause.
            let isStarted = await fixture.failure(source, Self.hiding) == nil
            #expect(!isStarted || start.duration(to: .now) >= DetectorPool.pause)
        }
    }

    @Test func crashIsRepeatedOnce() async throws {
        let source = try await Self.source()
        let folder = TemporaryFolder("detector")
        try await Self.with(Self.command("first", "\(folder.path)/started", "crash")) { fixture in
            #expect(await fixture.failure(source, Self.hiding) == nil)
            // Read by a thread of its own.
            try await until("the line is logged") { fixture.log.contains("about to crash") }
            #expect(fixture.log.contains { $0.hasPrefix("failed: the detector ended: signal 11") })
        }
    }

    @Test func deadlineAndCancellationStopTheDetector() async throws {
        let source = try await Self.source()
        try await Self.with(Self.command("hang"), limits: ImageLimits(renderTime: .seconds(3))) { fixture in
            let failure = await fixture.failure(source, Self.hiding)
            #expect(failure?.code == .timeout && failure?.message.contains("images.renderTimeout") == true)
            #expect(fixture.detector.processes.isEmpty)
        }
        try await Self.with(Self.command("hang")) { fixture in
            let task = Task { try await fixture.render(source, [Self.toFaces]) }
            try await until("a detector runs") { fixture.detector.processes.count == 1 }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            try await until("it was killed") { fixture.detector.processes.isEmpty }
        }
    }

    @Test func idleDetectorsEndWhenTheirMemoryIsNeeded() async throws {
        let source = try await Self.source()
        try await Self.with(Self.command("photo"), memory: 256 << 20) { fixture in
            _ = try await fixture.render(source, [Self.toFaces])
            #expect(fixture.detector.processes.count == 1)
            await blocking { fixture.detector.endIdle() }
            #expect(fixture.detector.processes.isEmpty)
            _ = try await fixture.render(source, [Self.toFaces])
            #expect(fixture.detector.processes.count == 1)
        }
        // The memory of a whole process is reserved, so an idle one is kept only where there is some left.
        try await Self.with(Self.command("photo"), memory: 1 << 20) { fixture in
            _ = try await fixture.render(source, [Self.toFaces])
            #expect(fixture.detector.processes.isEmpty)
        }
    }

    // MARK: The detector on OpenCV

    /// The program and its model, which `make detector` builds.
    static let opencv = ["halcyon-detector", "centerface.onnx"].map { Repository.path(".build/detector/\($0)") }
    static var isBuilt: Bool { opencv.allSatisfy { access($0, R_OK) == 0 } }

    @Test(.enabled(if: isBuilt, "run make detector"))
    func openCVFindsAFaceInPicturesOfAllSizes() async throws {
        let astronaut = try SampleImages.bytes("astronaut.jpg")
        let others = try ["chelsea", "coffee", "rocket", "hubble"].map { try SampleImages.bytes("\($0).jpg") }
        try await Self.with(Self.opencv) { fixture in
            var variant = Variant(sizing: Sizing(goal: .sizer(.natural)), findings: [.faces])
            variant.output.format = .jpeg
            for source in others + [astronaut] + others {
                let image = try await fixture.render(source, [variant])[0]
                let faces = try #require(image.faces)
                guard source == astronaut else {
                    #expect(faces.allSatisfy { $0.confidence < 0.5 }, "\(faces)")
                    continue
                }
                // The face is at (170…280, 60…180) of 512×512 pixels.
                let face = try #require(faces.first)
                let place = face.place
                #expect(face.confidence > 0.8 && faces.count { $0.confidence > 0.5 } == 1)
                #expect((165...195).contains(place.x) && (50...75).contains(place.y), "\(place)")
                #expect((75...115).contains(place.width) && (100...135).contains(place.height), "\(place)")
            }
            // A narrow part contains the face.
            var narrow = Variant(
                sizing: Sizing(
                    goal: .display(Display(width: 60, height: 200)), gravity: .detected(DetectedGravity(.faces))),
                findings: [.faces])
            narrow.output.format = .jpeg
            let face = try #require(await fixture.render(astronaut, [narrow])[0].faces?.first).place
            #expect(face.x > 3 && face.x + face.width < 57, "\(face)")
            #expect(fixture.log == [] && fixture.detector.processes.count == 1)
        }
    }

    @Test(.enabled(if: isBuilt, "run make detector"))
    func openCVHidesTheFaceFromItself() async throws {
        let astronaut = try SampleImages.bytes("astronaut.jpg")
        try await Self.with(Self.opencv) { fixture in
            for hiding in [FaceHiding(.blur(amount: 0.15)), FaceHiding(.pixelate(cells: 8))] {
                var variant = Self.hiding
                variant.processors = [.hideFaces(hiding)]
                let hidden = try await fixture.render(astronaut, [variant])[0].body
                var facts = Variant(sizing: Sizing(goal: .sizer(.natural)), findings: [.faces])
                facts.output.format = .png
                let faces = try #require(await fixture.render(hidden, [facts])[0].faces)
                #expect(faces.allSatisfy { $0.confidence < 0.6 }, "\(hiding.name): \(faces)")
            }
        }
    }

    @Test(
        .enabled(if: isBuilt, "run make detector"),
        .enabled(if: !clinux_has_sanitizer(), "processes have no memory limits under a sanitizer"))
    func openCVRespectsItsMemoryLimit() async throws {
        let square = try await TestImages.noise(width: 900, height: 900)
        var variant = Variant(sizing: Sizing(goal: .sizer(.natural)), findings: [.faces])
        variant.output.format = .jpeg
        try await Self.with(Self.opencv) { fixture in
            #expect(await fixture.failure(square, variant) == nil, "the default suffices for the largest pictures")
        }
        try await Self.with(Self.opencv, { $0.memory = 48 << 20 }) { fixture in
            #expect(await fixture.failure(square, variant)?.code == .internal)
        }
    }
}
