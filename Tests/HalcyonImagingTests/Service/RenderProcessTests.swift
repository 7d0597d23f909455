import CLinux
import Concurrency
import Glibc
import HalcyonModel
import Subprocess
import TestSupport
import Testing
import Vips

@testable import HalcyonImaging

@Suite(.limitedParallelism) struct RenderProcessTests {
    @Test(arguments: [ImageFormat.jpeg, .png, .webp, .avif])
    func childProducesTheSameFile(_ format: ImageFormat) async throws {
        let source = try await TestImages.noise(.png)
        try await RenderFixture.with { fixture in
            let here = try await fixture.pool.run {
                try fixture.renderer.render(source, [filling(90, 70, as: format)]).images[0]
            }
            let there = try await fixture.renderInChild(source, filling(90, 70, as: format))
            #expect(there.body == here.body && there.sha256 == here.sha256 && there.size == here.size)
            #expect(there.format == here.format)
            #expect(fixture.children.processes.count == 1)
        }
    }

    @Test func onlyUninterruptibleRenderingsUseAChild() async throws {
        let jpeg = try await TestImages.noise()
        let mark = Source.initials(try Initials("H"))
        func usesChild(
            _ source: [UInt8], _ variants: [Variant], assets: [Source: [UInt8]] = [:]
        ) async throws -> Bool {
            var used = false
            try await RenderFixture.with { fixture in
                _ = try await fixture.service.render(source, variants, assets: assets)
                used = !fixture.children.processes.isEmpty
            }
            return used
        }
        #expect(try await !usesChild(jpeg, [filling(9, 9, as: .jpeg), filling(900, 900, as: .png)]))
        // The delay of a cancellation is short for a small image, and long for a large one.
        #expect(try await !usesChild(jpeg, [filling(9, 9, as: .webp), filling(9, 9, as: .gif)]))
        #expect(try await usesChild(jpeg, [filling(9, 9, as: .jpeg), filling(1000, 1000, as: .webp)]))
        #expect(try await usesChild(jpeg, [filling(9, 9, as: .avif)]))
        for format in [Format.png, .tiff, .webp, .gif] {
            #expect(try await !usesChild(TestImages.noise(format), [filling(9, 9, as: .jpeg)]), "\(format)")
        }
        let large = try await TestImages.noise(.webp, width: 2500, height: 1500)
        #expect(try await usesChild(large, [filling(9, 9, as: .jpeg)]))
        var marked = filling(9, 9, as: .jpeg)
        marked.processors = [.watermark(Watermark(source: mark))]
        #expect(try await usesChild(jpeg, [marked], assets: [mark: large]))
        #expect(try await !usesChild(jpeg, [marked], assets: [mark: jpeg]))
        let heif = try await TestImages.noise(.heif)
        #expect(try await usesChild(heif, [filling(9, 9, as: .jpeg)]))
        #expect(try await usesChild(jpeg, [filling(9, 9, as: .jpeg)], assets: [mark: heif]))
        let drawing = Array("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>".utf8)
        #expect(try await usesChild(drawing, [filling(9, 9, as: .png)]))
    }

    /// Formats that libvips considers untrusted, vector formats and formats of libheif: whole, truncated, and with
    /// garbage after the first bytes, as the source and as an asset of a processor.
    @Test func neverOpensRiskyFormatsInThisProcess() async throws {
        let svg = Array("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect/></svg>".utf8)
        let pdf = Array("%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n".utf8)
        let files = [
            svg, pdf, try await TestImages.noise(.heif, width: 16, height: 16),
            // JPEG XL, as a bare stream and in its container.
            [0xff, 0x0a, 0xf8, 0x17, 0x3e, 0x00], [0, 0, 0, 12, 0x4a, 0x58, 0x4c, 0x20, 13, 10, 0x87, 10],
        ]
        let mark = Source.initials(try Initials("H"))
        let jpeg = try await TestImages.noise(width: 16, height: 16)
        // Without child processes these files can only be rejected.
        var tried = 0
        try await RenderFixture.with(program: "/nonexistent/halcyon") { fixture in
            for file in files {
                let damaged = file.enumerated().map { $0 < 40 ? $1 : UInt8(truncatingIfNeeded: $0 &* 91) }
                for bytes in [file, damaged, Array(file.prefix(max(12, file.count / 2)))] {
                    guard let found = try? await fixture.pool.run({ try EncodedImage(bytes).format }) else { continue }
                    for processor in [
                        Processor.watermark(Watermark(source: mark)), .overlay(.picture(mark, opacity: 1)),
                    ] {
                        var marked = filling(9, 9, as: .png)
                        marked.processors = [processor]
                        for (source, variant) in [(bytes, filling(9, 9, as: .png)), (jpeg, marked)] {
                            await #expect {
                                try await fixture.service.render(source, [variant], assets: [mark: bytes])
                            } throws: {
                                ($0 as? JobError)?.message.contains("could not start a render process") == true
                            }
                        }
                    }
                    #expect([.heif, .jxl, .svg, .pdf].contains(found))
                    tried += 1
                }
            }
            // Not every build of libvips has every loader.
            #expect(tried >= 6)
        }
    }

    @Test func childReceivesAssetsWithTheSource() async throws {
        let source = try await TestImages.noise(.png)
        let mark = Source.initials(try Initials("H"))
        var variant = filling(60, 40, as: .png)
        variant.processors = [.watermark(Watermark(source: mark))]
        let assets = [mark: try await TestImages.noise(.png, width: 16, height: 16)]
        try await RenderFixture.with { fixture in
            let here = try await fixture.service.render(source, [variant, filling(9, 9, as: .jpeg)], assets: assets)
            let there = try await fixture.service.render(
                source, [variant, filling(9, 9, as: .jpeg)], assets: assets, isolation: .always)
            #expect(fixture.children.processes.count == 1)
            #expect(here.images.map(\.body) == there.images.map(\.body))
            #expect(here.sourceSize == there.sourceSize && here.sourceFormat == there.sourceFormat)
        }
    }

    /// A URL with another name in cache keys is another asset.
    @Test func childDistinguishesAssetsByTheirCacheKey() async throws {
        let source = try await TestImages.noise(.png)
        let url = try WebURL("https://example.org/mark.png")
        let marks = try [Source.web(url), Source.web(url.named("mark"))]
        var variant = filling(60, 40, as: .png)
        variant.processors = marks.map { Processor.watermark(Watermark(source: $0)) }
        let assets: [Source: [UInt8]] = [
            marks[0]: try await TestImages.noise(.png, width: 16, height: 16),
            marks[1]: try await TestImages.noise(.png, width: 9, height: 24),
        ]
        try await RenderFixture.with { fixture in
            let here = try await fixture.service.render(source, [variant], assets: assets)
            let there = try await fixture.service.render(source, [variant], assets: assets, isolation: .always)
            #expect(fixture.children.processes.count == 1)
            #expect(here.images.map(\.body) == there.images.map(\.body))
        }
    }

    @Test func returnsFailuresOfTheChild() async throws {
        let whole = try await TestImages.noise()
        try await RenderFixture.with(limits: ImageLimits(outputPixels: 10_000)) { fixture in
            #expect(await fixture.failure(Array("no image".utf8), filling(9, 9, as: .png))?.code == .unsupportedFormat)
            let cut = Array(whole.prefix(whole.count / 2))
            #expect(await fixture.failure(cut, filling(9, 9, as: .png))?.code == .corruptImage)
            let large = await fixture.failure(whole, filling(101, 100, as: .png))
            #expect(large?.code == .tooManyPixels && large?.message.contains("101×100") == true)
            // None of these failures ended the child.
            #expect(fixture.loggedEvents.isEmpty && fixture.children.processes.count == 1)
        }
    }

    @Test func reusesAChildUpToItsLimits() async throws {
        let source = try await TestImages.noise()
        func pids(_ change: (inout RenderProcessOptions) -> Void) async throws -> [Int32] {
            var pids: [Int32] = []
            try await RenderFixture.with({ change(&$0) }) { fixture in
                for _ in 0..<6 {
                    _ = try await fixture.renderInChild(source, filling(20, 20, as: .jpeg))
                    pids += fixture.children.processes
                }
            }
            return pids
        }
        let kept = try await pids { _ in }
        #expect(kept.count == 6 && Set(kept).count == 1)
        // The child is ended after every third rendering.
        let replaced = try await pids { $0.renderings = 3 }
        #expect(replaced.count == 4 && Set(replaced).count == 2)
        let outgrown = try await pids { $0.restingMemory = 1 }
        #expect(outgrown.isEmpty || clinux_has_sanitizer())
    }

    @Test func childExitsCleanlyWhenTheSocketCloses() async throws {
        let input = RenderTask.Input(
            source: try await TestImages.noise(), variants: [filling(20, 20, as: .avif)], assets: [:],
            isolation: .always)
        // Under the address sanitizer a leak would change the exit code.
        let child = try await blocking {
            let renderer = Renderer()
            let need = try renderer.plan(renderer.identify(input.source), input.variants).memory
            let (socket, childSocket) = try MessageSocket.pair()
            var options = ChildProcess.Options()
            options.input = .descriptor(childSocket)
            options.errors = .inherited
            let child = try ChildProcess.startBlocking(HalcyonExecutable.path, ["render-child"], options: options)
            close(childSocket)
            for _ in 0..<3 {
                for memory in [need - 1, need] {
                    try socket.send(RenderRequest.message(input, within: ImageLimits(), memory: memory))
                    let reply = try #require(try socket.receive(.init(bytes: 1 << 20)))
                    // It does not render without enough memory.
                    switch try #require(try reply.value(RenderReply.self).answer(reply.bodies)) {
                    case .needs(let more): #expect(more == need && memory < need)
                    case .rendered(let rendering): #expect(rendering.images.count == 1 && memory == need)
                    case .failed(let failure): Issue.record(failure)
                    }
                }
            }
            return child
        }
        // The socket was closed at the end of the block.
        #expect(await child.exit() == .code(0))
    }

    @Test func silentlyReplacesAChildThatDiedWhileIdle() async throws {
        let source = try await TestImages.noise()
        try await RenderFixture.with { fixture in
            _ = try await fixture.renderInChild(source, filling(20, 20, as: .jpeg))
            let first = try await fixture.child()
            kill(first, SIGKILL)
            try await until("the child is gone") { fixture.children.processes.isEmpty }
            _ = try await fixture.renderInChild(source, filling(20, 20, as: .jpeg))
            let second = try await fixture.child()
            #expect(second != first)
            #expect(fixture.loggedEvents.isEmpty)
        }
    }

    @Test func childIgnoresSIGTERMAndSIGINT() async throws {
        let source = try await TestImages.noise()
        try await RenderFixture.with { fixture in
            _ = try await fixture.renderInChild(source, filling(20, 20, as: .jpeg))
            let child = try await fixture.child()
            kill(child, SIGTERM)
            kill(child, SIGINT)
            _ = try await fixture.renderInChild(source, filling(20, 20, as: .jpeg))
            let same = try await fixture.child()
            #expect(same == child)
        }
    }

    @Test(.enabled(if: !clinux_has_sanitizer(), "its shadow memory is larger than any limit"))
    func enforcesTheMemoryLimit() async throws {
        let source = try await TestImages.noise()
        // 48 million bytes of pixels, more than once.
        var large = filling(4000, 4000, as: .jpeg)
        large.interpolationQuality = .none
        try await RenderFixture.with({ $0.memory = 64 << 20 }) { fixture in
            let failure = await fixture.failure(source, large)
            #expect(
                failure.map { [.corruptImage, .internal, .tooManyPixels].contains($0.code) } == true,
                "\(failure as Any)")
            _ = try await fixture.renderInChild(source, filling(20, 20, as: .jpeg))
        }
        try await RenderFixture.with({ $0.memory = 1 << 30 }) { fixture in
            let failure = await fixture.failure(source, large)
            #expect(failure == nil)
        }
    }

    // In its own process, because libvips counts the memory of the whole process.
    @Test func decodesEvenSmallAnimationsInAChild() async {
        await #expect(processExitsWith: .success) {
            await recordingErrors {
                let source = AnimatedGIF.repeating(
                    try await TestImages.noise(.gif, width: 160, height: 120), frames: 300)
                try await RenderFixture.with { fixture in
                    let rendering = try await fixture.service.render(source, [filling(40, 30, as: .gif)])
                    #expect(rendering.images[0].format == .gif && fixture.children.processes.count == 1)
                }
                // The frames take 23 MB.
                #expect(VipsLibrary.highestBytes < 4 << 20)
            }
        }
    }

    @Test(arguments: [1_000_000, 20_000_000])
    func rendersInAChildIfMuchMemoryIsNeeded(_ pixels: Int) async throws {
        let source = try await TestImages.noise(.png, width: pixels / 1000, height: 1000)
        try await RenderFixture.with { fixture in
            // Two outputs share a decoded image, which is in memory.
            _ = try await fixture.service.render(source, [filling(9, 9, as: .png), filling(8, 8, as: .png)])
            #expect(fixture.children.processes.isEmpty == (pixels == 1_000_000))
        }
    }

    /// The allocator of a process does not return address space to the system. Within 400 MiB, the later renderings
    /// would fail in the process of the first one.
    @Test(
        .enabled(if: !clinux_has_sanitizer(), "its shadow memory is larger than any limit"),
        arguments: [400 << 20, 2 << 30])
    func reusesAProcessOnlyIfItCanReserveEnough(_ memory: Int) async throws {
        try await RenderFixture.with({ ($0.memory, $0.restingMemory) = (memory, 1 << 30) }) { fixture in
            var processes: Set<[Int32]> = []
            for height in [1200, 1600, 2000] {
                let source = try await TestImages.plain(.png, width: 20_000, height: height)
                _ = try await fixture.service.render(source, [filling(9, 9, as: .png), filling(8, 8, as: .png)])
                processes.insert(fixture.children.processes)
            }
            #expect(processes.allSatisfy { $0.count == 1 })
            #expect((processes.count == 1) == (memory == 2 << 30))
        }
    }

    @Test(.extended, .enabled(if: !clinux_has_sanitizer(), "its shadow memory is larger than any limit"))
    func retriesARenderingThatExceedsItsEstimate()
        async throws
    {
        // Each result of the filter is an image that the header does not announce.
        let floods = (0..<24).map { "<feFlood result='r\($0)' flood-opacity='0.\($0)'/>" }.joined()
        let merged = (0..<24).map { "<feMergeNode in='r\($0)'/>" }.joined()
        let drawing = Array(
            """
            <svg xmlns='http://www.w3.org/2000/svg' width='2400' height='2400'><filter id='f' x='0' y='0' width='1' height='1'>\
            \(floods)<feMerge>\(merged)</feMerge></filter><rect width='2400' height='2400' filter='url(#f)'/></svg>
            """.utf8)
        let output = filling(2400, 2400, as: .jpeg)
        try await RenderFixture.with(memory: 1 << 30) { fixture in
            #expect(await fixture.failure(drawing, output, isolation: .whereNeeded) == nil)
            #expect(fixture.service.memoryUse == (0, 0))
        }
        let limits = ImageLimits(decodedBytes: 256 << 20, renderTime: .seconds(600))
        try await RenderFixture.with(limits: limits, memory: 1 << 30) { fixture in
            let failure = await fixture.failure(drawing, output, isolation: .whereNeeded)
            #expect(
                failure?.code == .tooManyPixels && failure?.message.contains("256 MiB") == true, "\(failure as Any)")
            #expect(fixture.service.memoryUse == (0, 0))
            _ = try await fixture.renderInChild(await TestImages.noise(), filling(20, 20, as: .jpeg))
        }
    }

    // In its own process, so that descriptors and children of other tests are not counted.
    @Test(.extended) func leaksNoDescriptorsOrProcesses() async {
        await #expect(processExitsWith: .success) {
            await recordingErrors {
                let (source, cut) = (try await TestImages.noise(), Array(try await TestImages.noise().prefix(5000)))
                let before = ProcFS.descriptors
                var seen: Set<Int32> = []
                try await RenderFixture.with(threads: 2, { $0.renderings = 4 }) { fixture in
                    for _ in 0..<100 {
                        async let one = fixture.renderInChild(source, filling(30, 30, as: .jpeg))
                        async let other = fixture.failure(cut, filling(30, 30, as: .avif))
                        _ = try await one
                        _ = await other
                        seen.formUnion(fixture.children.processes)
                    }
                    #expect(fixture.children.processes.count <= 2, "\(fixture.children.processes)")
                }
                #expect(seen.count >= 20, "\(seen.count) processes")
                let running = seen.filter { kill($0, 0) == 0 }
                #expect(running.isEmpty, "\(running)")
                // The last reference to a process, with its socket, may be released after the rendering has returned.
                try await until("no descriptors but \(before) are open: \(ProcFS.descriptors)") {
                    ProcFS.descriptors == before
                }
            }
        }
    }
}
