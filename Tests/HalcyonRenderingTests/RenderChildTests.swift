import CLinux
import Glibc
import HalcyonImaging
import HalcyonModel
import HalcyonRendering
import TestSupport
import Testing
import Vips

@Suite(.takesTurns) struct RenderChildTests {
    @Test(arguments: [ImageFormat.jpeg, .png, .webp, .avif])
    func `a child makes the same file`(_ format: ImageFormat) async throws {
        let source = try await Pictures.noise(.png)
        try await Studio.with { studio in
            let here = try await studio.pool.run {
                try studio.renderer.render(source, [filling(90, 70, as: format)]).images[0]
            }
            let there = try await studio.renderInChild(source, filling(90, 70, as: format))
            #expect(there.body == here.body && there.sha256 == here.sha256 && there.size == here.size)
            #expect(there.format == here.format)
            #expect(studio.children.processes.count == 1)
        }
    }

    @Test func `only what cannot be stopped goes to a child`() async throws {
        let (jpeg, avif) = (try await Pictures.noise(), try await Pictures.noise(.heif))
        try await Studio.with { studio in
            for format in [ImageFormat.jpeg, .png, .webp] {
                _ = try await studio.service.render(jpeg, [filling(50, 50, as: format)])
            }
            #expect(studio.children.processes.isEmpty)
            _ = try await studio.service.render(jpeg, [filling(50, 50, as: .jpeg), filling(50, 50, as: .avif)])
            #expect(studio.children.processes.count == 1)
        }
        try await Studio.with { studio in
            _ = try await studio.service.render(avif, [filling(50, 50, as: .jpeg)])
            #expect(studio.children.processes.count == 1)
        }
    }

    @Test func `failures come back as they are`() async throws {
        let whole = try await Pictures.noise()
        try await Studio.with(limits: ImageLimits(outputPixels: 10_000)) { studio in
            #expect(await studio.failure(Array("no image".utf8), filling(9, 9, as: .png))?.code == .unsupportedFormat)
            let cut = Array(whole.prefix(whole.count / 2))
            #expect(await studio.failure(cut, filling(9, 9, as: .png))?.code == .corruptImage)
            let large = await studio.failure(whole, filling(101, 100, as: .png))
            #expect(large?.code == .tooManyPixels && large?.message.contains("101×100") == true)
            // None of that was the child's end.
            #expect(studio.notes.isEmpty && studio.children.processes.count == 1)
        }
    }

    @Test func `a child is kept, and replaced when it has done enough or grown too large`() async throws {
        let source = try await Pictures.noise()
        func pids(_ change: (inout RenderChildOptions) -> Void) async throws -> [Int32] {
            var pids: [Int32] = []
            try await Studio.with({ change(&$0) }) { studio in
                for _ in 0..<6 {
                    _ = try await studio.renderInChild(source, filling(20, 20, as: .jpeg))
                    pids += studio.children.processes
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

    @Test func `a child that died while idle is replaced without a word`() async throws {
        let source = try await Pictures.noise()
        try await Studio.with { studio in
            _ = try await studio.renderInChild(source, filling(20, 20, as: .jpeg))
            let first = try await studio.child()
            kill(first, SIGKILL)
            try await until("it is gone") { studio.children.processes.isEmpty }
            _ = try await studio.renderInChild(source, filling(20, 20, as: .jpeg))
            let second = try await studio.child()
            #expect(second != first)
            #expect(studio.notes.isEmpty)
        }
    }

    @Test func `a child that is asked to end goes on, and so does its rendering`() async throws {
        let source = try await Pictures.noise()
        try await Studio.with { studio in
            _ = try await studio.renderInChild(source, filling(20, 20, as: .jpeg))
            let child = try await studio.child()
            kill(child, SIGTERM)
            kill(child, SIGINT)
            _ = try await studio.renderInChild(source, filling(20, 20, as: .jpeg))
            let same = try await studio.child()
            #expect(same == child)
        }
    }

    @Test(.enabled(if: !clinux_has_address_sanitizer(), "its shadow is larger than any limit"))
    func `a picture gets no more memory than is allowed`() async throws {
        let source = try await Pictures.noise()
        try await Studio.with({ $0.memory = 100 << 20 }) { studio in
            // 192 million bytes of pixels.
            let failure = await studio.failure(source, filling(8000, 8000, as: .jpeg))
            #expect(failure.map { [.corruptImage, .internal].contains($0.code) } == true, "\(failure as Any)")
            _ = try await studio.renderInChild(source, filling(20, 20, as: .jpeg))
        }
        try await Studio.with({ $0.memory = 1 << 30 }) { studio in
            #expect(await studio.failure(source, filling(8000, 8000, as: .jpeg)) == nil)
        }
    }

    @Test func `hundreds of renderings leave no descriptor and no process`() async throws {
        let (source, cut) = (try await Pictures.noise(), Array(try await Pictures.noise().prefix(5000)))
        let before = Machine.descriptors
        var seen: Set<Int32> = []
        try await Studio.with(threads: 2, { $0.renderings = 4 }) { studio in
            for _ in 0..<100 {
                async let one = studio.renderInChild(source, filling(30, 30, as: .jpeg))
                async let other = studio.failure(cut, filling(30, 30, as: .avif))
                _ = try await one
                _ = await other
                seen.formUnion(studio.children.processes)
            }
            #expect(studio.children.processes.count <= 2)
        }
        #expect(seen.count >= 20)
        #expect(seen.allSatisfy { kill($0, 0) != 0 && errno == ESRCH })
        // Each child has two. Other tests come and go meanwhile.
        try await until("descriptors are closed") { Machine.descriptors < before + 20 }
    }
}
