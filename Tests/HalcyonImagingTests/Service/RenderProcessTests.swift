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
    func `a child makes the same file`(_ format: ImageFormat) async throws {
        let source = try await Pictures.noise(.png)
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

    @Test func `only what cannot be stopped goes to a child`() async throws {
        let jpeg = try await Pictures.noise()
        let mark = Source.initials(try Initials("H"))
        func goesToChild(
            _ source: [UInt8], _ variants: [Variant], assets: [Source: [UInt8]] = [:]
        ) async throws -> Bool {
            var goes = false
            try await RenderFixture.with { fixture in
                _ = try await fixture.service.render(source, variants, assets: assets)
                goes = !fixture.children.processes.isEmpty
            }
            return goes
        }
        #expect(try await !goesToChild(jpeg, [filling(9, 9, as: .jpeg), filling(900, 900, as: .png)]))
        // A small picture is done before anybody could wait for it, a large one is not.
        #expect(try await !goesToChild(jpeg, [filling(9, 9, as: .webp), filling(9, 9, as: .gif)]))
        #expect(try await goesToChild(jpeg, [filling(9, 9, as: .jpeg), filling(1000, 1000, as: .webp)]))
        #expect(try await goesToChild(jpeg, [filling(9, 9, as: .avif)]))
        for format in [Format.png, .tiff, .webp, .gif] {
            #expect(try await !goesToChild(Pictures.noise(format), [filling(9, 9, as: .jpeg)]), "\(format)")
        }
        let large = try await Pictures.noise(.webp, width: 2500, height: 1500)
        #expect(try await goesToChild(large, [filling(9, 9, as: .jpeg)]))
        let heif = try await Pictures.noise(.heif)
        #expect(try await goesToChild(heif, [filling(9, 9, as: .jpeg)]))
        #expect(try await goesToChild(jpeg, [filling(9, 9, as: .jpeg)], assets: [mark: heif]))
        let drawing = Array("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>".utf8)
        #expect(try await goesToChild(drawing, [filling(9, 9, as: .png)]))
    }

    /// What libvips takes for untrusted, what is drawn, and what libheif reads: whole, cut, and with rubbish behind the
    /// first bytes, as the source and as what a processor takes.
    @Test func `risky formats are never opened here`() async throws {
        let svg = Array("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect/></svg>".utf8)
        let pdf = Array("%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n".utf8)
        let files = [
            svg, pdf, try await Pictures.noise(.heif, width: 16, height: 16),
            // JPEG XL, as a bare stream and in its container; zipped SVG.
            [0xff, 0x0a, 0xf8, 0x17, 0x3e, 0x00], [0, 0, 0, 12, 0x4a, 0x58, 0x4c, 0x20, 13, 10, 0x87, 10],
        ]
        let mark = Source.initials(try Initials("H"))
        let jpeg = try await Pictures.noise(width: 16, height: 16)
        // Where there is no child to be had, nothing but a refusal can come of them.
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
            // Not every libvips has every loader.
            #expect(tried >= 6)
        }
    }

    @Test func `assets go to a child with the source`() async throws {
        let source = try await Pictures.noise(.png)
        let mark = Source.initials(try Initials("H"))
        var variant = filling(60, 40, as: .png)
        variant.processors = [.watermark(Watermark(source: mark))]
        let assets = [mark: try await Pictures.noise(.png, width: 16, height: 16)]
        try await RenderFixture.with { fixture in
            let here = try await fixture.service.render(source, [variant, filling(9, 9, as: .jpeg)], assets: assets)
            let there = try await fixture.service.render(
                source, [variant, filling(9, 9, as: .jpeg)], assets: assets, isolation: .always)
            #expect(fixture.children.processes.count == 1)
            #expect(here.images.map(\.body) == there.images.map(\.body))
            #expect(here.sourceSize == there.sourceSize && here.sourceFormat == there.sourceFormat)
        }
    }

    @Test func `failures come back as they are`() async throws {
        let whole = try await Pictures.noise()
        try await RenderFixture.with(limits: ImageLimits(outputPixels: 10_000)) { fixture in
            #expect(await fixture.failure(Array("no image".utf8), filling(9, 9, as: .png))?.code == .unsupportedFormat)
            let cut = Array(whole.prefix(whole.count / 2))
            #expect(await fixture.failure(cut, filling(9, 9, as: .png))?.code == .corruptImage)
            let large = await fixture.failure(whole, filling(101, 100, as: .png))
            #expect(large?.code == .tooManyPixels && large?.message.contains("101×100") == true)
            // None of that was the child's end.
            #expect(fixture.notes.isEmpty && fixture.children.processes.count == 1)
        }
    }

    @Test func `a child is kept, and replaced when it has done enough or grown too large`() async throws {
        let source = try await Pictures.noise()
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
        // After every third there is none.
        let replaced = try await pids { $0.renderings = 3 }
        #expect(replaced.count == 4 && Set(replaced).count == 2)
        let outgrown = try await pids { $0.restingMemory = 1 }
        #expect(outgrown.isEmpty)
    }

    @Test func `a child whose parent lets go ends by itself, and well`() async throws {
        let order = RenderTask.Input(
            source: try await Pictures.noise(), variants: [filling(20, 20, as: .avif)], assets: [:], isolation: .always)
        // Under the address sanitizer it would end with another code, had it lost memory.
        let child = try await blocking {
            let renderer = Renderer()
            let need = try renderer.plan(renderer.identify(order.source), order.variants).memory
            let (socket, childs) = try MessageSocket.pair()
            var options = ChildProcess.Options()
            options.input = .descriptor(childs)
            options.errors = .inherited
            let child = try ChildProcess.startBlocking(HalcyonExecutable.path, ["render-child"], options: options)
            close(childs)
            for _ in 0..<3 {
                for memory in [need - 1, need] {
                    try socket.send(RenderRequest.message(order, within: ImageLimits(), memory: memory))
                    let reply = try #require(try socket.receive(.init(bytes: 1 << 20)))
                    // It does nothing for which it was not given memory.
                    switch try #require(try reply.value(RenderReply.self).answer(reply.bodies)) {
                    case .needs(let more): #expect(more == need && memory < need)
                    case .rendered(let rendering): #expect(rendering.images.count == 1 && memory == need)
                    case .failed(let failure): Issue.record(failure)
                    }
                }
            }
            return child
        }
        // The socket went with the block.
        #expect(await child.exit() == .code(0))
    }

    @Test func `a child that died while idle is replaced without a word`() async throws {
        let source = try await Pictures.noise()
        try await RenderFixture.with { fixture in
            _ = try await fixture.renderInChild(source, filling(20, 20, as: .jpeg))
            let first = try await fixture.child()
            kill(first, SIGKILL)
            try await until("it is gone") { fixture.children.processes.isEmpty }
            _ = try await fixture.renderInChild(source, filling(20, 20, as: .jpeg))
            let second = try await fixture.child()
            #expect(second != first)
            #expect(fixture.notes.isEmpty)
        }
    }

    @Test func `a child that is asked to end goes on, and so does its rendering`() async throws {
        let source = try await Pictures.noise()
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

    @Test(.enabled(if: !clinux_has_sanitizer(), "its shadow is larger than any limit"))
    func `a picture gets no more memory than is allowed`() async throws {
        let source = try await Pictures.noise()
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

    // In a process of its own: what libvips holds is counted for all of it.
    @Test func `an animation is decoded in a child, however small it is`() async {
        await #expect(processExitsWith: .success) {
            let source = AnimatedGIF.repeating(try await Pictures.noise(.gif, width: 160, height: 120), frames: 999)
            try await RenderFixture.with { fixture in
                let rendering = try await fixture.service.render(source, [filling(40, 30, as: .gif)])
                #expect(rendering.images[0].frames == 999)
            }
            // The frames take 77 MB.
            #expect(VipsLibrary.highestBytes < 4 << 20)
        }
    }

    @Test(arguments: [1_000_000, 20_000_000])
    func `what takes much memory is rendered in a child`(_ pixels: Int) async throws {
        let source = try await Pictures.noise(.png, width: pixels / 1000, height: 1000)
        try await RenderFixture.with { fixture in
            // Two outputs share a decoding, which is in memory for them.
            _ = try await fixture.service.render(source, [filling(9, 9, as: .png), filling(8, 8, as: .png)])
            #expect(fixture.children.processes.isEmpty == (pixels == 1_000_000))
        }
    }

    @Test(.enabled(if: !clinux_has_sanitizer(), "its shadow is larger than any limit"))
    func `a rendering that takes more memory than was expected has a second try, and ends for itself alone`()
        async throws
    {
        // Each of the filter's results is a picture: the header says nothing of them.
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
            _ = try await fixture.renderInChild(await Pictures.noise(), filling(20, 20, as: .jpeg))
        }
    }

    // In a process of its own: nothing is counted that other tests hold.
    @Test func `hundreds of renderings leave no descriptor and no process`() async {
        await #expect(processExitsWith: .success) {
            let (source, cut) = (try await Pictures.noise(), Array(try await Pictures.noise().prefix(5000)))
            let before = Machine.descriptors
            var seen: Set<Int32> = []
            try await RenderFixture.with(threads: 2, { $0.renderings = 4 }) { fixture in
                for _ in 0..<100 {
                    async let one = fixture.renderInChild(source, filling(30, 30, as: .jpeg))
                    async let other = fixture.failure(cut, filling(30, 30, as: .avif))
                    _ = try await one
                    _ = await other
                    seen.formUnion(fixture.children.processes)
                }
                #expect(fixture.children.processes.count <= 2)
            }
            #expect(seen.count >= 20)
            #expect(seen.allSatisfy { kill($0, 0) != 0 && errno == ESRCH })
            #expect(Machine.descriptors == before)
        }
    }
}
